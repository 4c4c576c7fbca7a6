//! One row of the API table: everything that the server, the OpenAPI document and the tests
//! need to know about an operation.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::http::Method;
use schemars::{JsonSchema, SchemaGenerator};

use super::page::{LIMIT_ALWAYS_PAGED_MAX, LIMIT_MAX};
use super::query::Param;
use super::request::Request;
use super::respond::Reply;
use crate::app::App;
use crate::error::Result;
use crate::iam::{Action, Kind};

/// Bytes of a request body unless the operation says otherwise.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a request body with a Secret value: 65,536 bytes, each escaped to two characters.
pub const SECRET_BODY_BYTES_MAX: usize = 160 * 1024;
/// Bytes of a request body with a configuration document.
pub const CONFIGURATION_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a request body that creates an Agent.
pub const AGENT_BODY_BYTES_MAX: usize = 448 * 1024;
/// Levels of arrays and objects in a request body.
pub const BODY_DEPTH_MAX: usize = occ_api::json::DEPTH_MAX;
/// Levels inside `values` of a Configuration.
pub const VALUES_DEPTH_MAX: usize = occ_api::json::DEPTH_MAX_DOCUMENT;
/// Longest time a handler may take, in seconds; a wait adds its own.
pub const HANDLER_SECS_MAX: u64 = 30;

type HandlerFuture = Pin<Box<dyn Future<Output = Result<Reply>> + Send>>;
type HandlerFn = Arc<dyn Fn(App, Request) -> HandlerFuture + Send + Sync>;
type SchemaFn = fn(&mut SchemaGenerator) -> schemars::Schema;

/// Who may call at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Anybody; no credential is looked at and the answer has no envelope.
    Open,
    /// A caller with a valid credential.
    Authenticated,
}

/// On which identifier a permission is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// The Installation.
    Installation,
    /// The parent, for `create`.
    Parent,
    /// The resource that the path or the body names.
    Item,
    /// Each item of the list; hides the others.
    Each,
    /// Whatever the caller's own question or the work's own operation says.
    Subject,
}

impl On {
    /// The word in the OpenAPI document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Installation => "installation",
            Self::Parent => "parent",
            Self::Item => "item",
            Self::Each => "each",
            Self::Subject => "subject",
        }
    }
}

/// One permission that an operation checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// What is done.
    pub action: Action,
    /// To which kind.
    pub kind: Kind,
    /// On which identifier.
    pub on: On,
}

/// A check of the table.
#[must_use]
pub const fn check(action: Action, kind: Kind, on: On) -> Check {
    Check { action, kind, on }
}

/// What an operation takes as body.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing; `{}` is refused too.
    None,
    /// Exactly `{}`.
    EmptyObject,
    /// A JSON document.
    Json {
        /// Its schema.
        schema: SchemaFn,
        /// Bytes on the wire.
        bytes_max: usize,
    },
}

/// What an operation answers with on success.
#[derive(Debug, Clone)]
pub enum Answer {
    /// No body.
    Nothing,
    /// `data` in the envelope.
    Data(SchemaFn),
    /// `data` is an array.
    List(SchemaFn),
    /// A document without the envelope.
    Bare(SchemaFn),
}

/// One operation of the API.
#[derive(Clone)]
pub struct Operation {
    /// `operationId`.
    pub id: &'static str,
    /// Method.
    pub method: Method,
    /// Path with `{parameters}`.
    pub path: &'static str,
    /// Who may call at all.
    pub admission: Admission,
    /// Permissions, as documentation for clients and tests; the handler asks for them.
    pub checks: &'static [Check],
    /// Audit action on success.
    pub audit: Option<&'static str>,
    /// Body.
    pub body: Body,
    /// Member of the body that may nest deeper, to [`VALUES_DEPTH_MAX`].
    pub deep_member: Option<&'static str>,
    /// Query parameters; none declared means that no query string is accepted.
    pub query: Vec<Param>,
    /// Status on success.
    pub success: u16,
    /// Takes `If-Match`.
    pub if_match: bool,
    /// Takes `Idempotency-Key`.
    pub idempotent: bool,
    /// Answers with an `ETag`.
    pub etag: bool,
    /// A list with `limit` and `cursor`.
    pub paged: bool,
    /// Takes `wait`.
    pub waits: bool,
    /// What success looks like.
    pub answer: Answer,
    pub(super) handler: HandlerFn,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Operation")
            .field("id", &self.id)
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

macro_rules! by_method {
    ($($(#[$doc:meta])* $name:ident => $method:ident,)+) => {
        $($(#[$doc])*
        #[must_use]
        pub(crate) fn $name<F, Fut>(path: &'static str, id: &'static str, handler: F) -> Operation
        where
            F: Fn(App, Request) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<Reply>> + Send + 'static,
        {
            Operation::new(Method::$method, path, id, Arc::new(move |app, request| Box::pin(handler(app, request))))
        })+
    };
}

by_method! {
    /// A `GET` row.
    get => GET,
    /// A `POST` row.
    post => POST,
    /// A `PATCH` row.
    patch => PATCH,
    /// A `DELETE` row.
    delete => DELETE,
}

impl Operation {
    fn new(method: Method, path: &'static str, id: &'static str, handler: HandlerFn) -> Self {
        Self {
            id,
            method,
            path,
            admission: Admission::Authenticated,
            checks: &[],
            audit: None,
            body: Body::None,
            deep_member: None,
            query: Vec::new(),
            success: 200,
            if_match: false,
            idempotent: false,
            etag: false,
            paged: false,
            waits: false,
            answer: Answer::Nothing,
            handler,
        }
    }

    /// Open to anybody; answers 200 with a bare document.
    #[must_use]
    pub fn open<T: JsonSchema>(self) -> Self {
        Self { admission: Admission::Open, answer: Answer::Bare(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// Takes a JSON body of at most `bytes_max` bytes.
    #[must_use]
    pub fn body<T: JsonSchema>(self, bytes_max: usize) -> Self {
        Self { body: Body::Json { schema: SchemaGenerator::subschema_for::<T>, bytes_max }, ..self }
    }

    /// Lets one member of the body nest to [`VALUES_DEPTH_MAX`] levels.
    #[must_use]
    pub fn deep(self, member: &'static str) -> Self {
        Self { deep_member: Some(member), ..self }
    }

    /// Takes exactly `{}`.
    #[must_use]
    pub fn empty_body(self) -> Self {
        Self { body: Body::EmptyObject, ..self }
    }

    /// Answers 200 with `data`.
    #[must_use]
    pub fn ok<T: JsonSchema>(self) -> Self {
        self.answers::<T>(200)
    }

    /// Answers 201 with `data`.
    #[must_use]
    pub fn created<T: JsonSchema>(self) -> Self {
        self.answers::<T>(201)
    }

    /// Answers 202 with `data`.
    #[must_use]
    pub fn accepted<T: JsonSchema>(self) -> Self {
        self.answers::<T>(202)
    }

    /// Answers 204.
    #[must_use]
    pub fn no_content(self) -> Self {
        Self { success: 204, answer: Answer::Nothing, ..self }
    }

    /// Answers 200 with an array; takes `limit` and `cursor`.
    #[must_use]
    pub fn list<T: JsonSchema>(mut self) -> Self {
        self.query.extend(Param::paging(LIMIT_MAX));
        Self { success: 200, paged: true, answer: Answer::List(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// The same for a list that is never returned whole: 50 items, at most 100.
    #[must_use]
    pub fn pages<T: JsonSchema>(mut self) -> Self {
        self.query.extend(Param::paging(LIMIT_ALWAYS_PAGED_MAX));
        Self { success: 200, paged: true, answer: Answer::List(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// Answers 200 with an array, without paging.
    #[must_use]
    pub fn array<T: JsonSchema>(self) -> Self {
        Self { success: 200, answer: Answer::List(SchemaGenerator::subschema_for::<T>), ..self }
    }

    /// Declares a query parameter.
    #[must_use]
    pub fn param(mut self, param: Param) -> Self {
        self.query.push(param);
        self
    }

    /// Takes `wait`, in whole seconds.
    #[must_use]
    pub fn waits(mut self) -> Self {
        self.query.push(Param::wait());
        Self { waits: true, ..self }
    }

    /// Takes `If-Match`.
    #[must_use]
    pub fn if_match(self) -> Self {
        Self { if_match: true, ..self }
    }

    /// Answers with an `ETag`.
    #[must_use]
    pub fn etag(self) -> Self {
        Self { etag: true, ..self }
    }

    /// Takes `Idempotency-Key`.
    #[must_use]
    pub fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// The permissions that the handler demands.
    #[must_use]
    pub fn needs(self, checks: &'static [Check]) -> Self {
        Self { checks, ..self }
    }

    /// The audit action of a success, also that of a denial.
    #[must_use]
    pub fn audited(self, action: &'static str) -> Self {
        Self { audit: Some(action), ..self }
    }

    /// Most bytes of a body, also of one that is going to be refused.
    #[must_use]
    pub fn body_bytes_max(&self) -> usize {
        match self.body {
            Body::Json { bytes_max, .. } => bytes_max,
            Body::None | Body::EmptyObject => BODY_BYTES_MAX,
        }
    }

    fn answers<T: JsonSchema>(self, success: u16) -> Self {
        Self { success, answer: Answer::Data(SchemaGenerator::subschema_for::<T>), ..self }
    }
}
