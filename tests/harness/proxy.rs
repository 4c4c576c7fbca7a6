//! A proxy between a client and PostgreSQL that breaks things at a chosen moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use crate::database::Database;

/// `COMMIT` as one message of the simple protocol.
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";
/// Longest message that is taken.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Sent by a client before everything else; the answer is `N`, go on without TLS.
const TLS_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// What the proxy does with the messages that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Passes them on.
    Direct,
    /// Gives each transaction to the other of two server connections, as a transaction pooler may.
    Pooled,
}

/// A running proxy; ends when dropped.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    name: String,
    commits: Arc<AtomicI64>,
    _tasks: JoinSet<()>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Proxy {
    /// Listens on a loopback port in front of a database's server.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(database: &Database, manner: Manner) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let commits = Arc::new(AtomicI64::new(0));
        let address = database.address();
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let commits = Arc::clone(&commits);
            async move {
                let mut sessions = JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    let (address, commits) = (address.clone(), Arc::clone(&commits));
                    sessions.spawn(async move {
                        let ended = match manner {
                            Manner::Direct => direct(client, &address, &commits).await,
                            Manner::Pooled => pooled(client, &address).await,
                        };
                        if let Err(error) = ended {
                            tracing::debug!(%error, "proxied session ended");
                        }
                    });
                }
            }
        });
        Ok(Self { port, name: database.name().to_owned(), commits, _tasks: tasks })
    }

    /// URL of the database through the proxy.
    #[must_use]
    pub fn url(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{}?sslmode=disable", self.port, self.name)
    }

    /// Withholds the answer to the `count`-th COMMIT from now on, and closes that connection.
    pub fn cut_commit(&self, count: i64) {
        self.commits.store(count, Ordering::SeqCst);
    }

    /// Has the chosen COMMIT passed?
    #[must_use]
    pub fn has_cut(&self) -> bool {
        self.commits.load(Ordering::SeqCst) == -1
    }
}

type Address = Result<std::path::PathBuf, (String, u16)>;

async fn server(address: &Address) -> Result<Box<dyn Stream>> {
    Ok(match address {
        Ok(socket) => Box::new(UnixStream::connect(socket).await?),
        Err((host, port)) => Box::new(TcpStream::connect((host.as_str(), *port)).await?),
    })
}

/// Passes bytes both ways until an end closes or a chosen COMMIT has been answered.
async fn direct(mut client: TcpStream, address: &Address, commits: &AtomicI64) -> Result<()> {
    let mut server = server(address).await?;
    let (mut from_client, mut from_server) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let bytes = from_client.get(..read?).filter(|bytes| !bytes.is_empty()).context("client closed")?;
                server.write_all(bytes).await?;
                let is_commit = bytes.windows(COMMIT.len()).any(|window| window == COMMIT);
                if is_commit && counted(commits) {
                    // The server has answered: it has committed. The client never hears of it.
                    message(&mut server).await?;
                    commits.store(-1, Ordering::SeqCst);
                    return Ok(());
                }
            }
            read = server.read(&mut from_server) => {
                let bytes = from_server.get(..read?).filter(|bytes| !bytes.is_empty()).context("server closed")?;
                client.write_all(bytes).await?;
            }
        }
    }
}

/// Counts a COMMIT; true for the one that was chosen.
fn counted(commits: &AtomicI64) -> bool {
    let left = |count: i64| (count > 0).then(|| count - 1);
    commits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) == Ok(1)
}

/// One client on two server connections, changed after each transaction.
async fn pooled(mut client: TcpStream, address: &Address) -> Result<()> {
    let mut servers = [server(address).await?, server(address).await?];
    let startup = startup(&mut client).await?;
    for (index, server) in servers.iter_mut().enumerate() {
        server.write_all(&startup).await?;
        while let Some((kind, message)) = message(server).await? {
            if index == 0 {
                client.write_all(&message).await?;
            }
            if kind == b'Z' {
                break;
            }
        }
    }
    while let Some((kind, request)) = message(&mut client).await? {
        let [current, _] = &mut servers;
        current.write_all(&request).await?;
        // Query and Sync are answered up to ReadyForQuery, whose last byte says whether a transaction is open.
        if matches!(kind, b'Q' | b'S') && answered(current, &mut client).await? {
            servers.reverse();
        }
    }
    Ok(())
}

/// Passes on a whole answer; true when no transaction is open after it.
async fn answered(server: &mut Box<dyn Stream>, client: &mut TcpStream) -> Result<bool> {
    loop {
        let (kind, answer) = message(server).await?.context("server closed")?;
        client.write_all(&answer).await?;
        if kind == b'Z' {
            return Ok(answer.last() == Some(&b'I'));
        }
    }
}

async fn startup(client: &mut TcpStream) -> Result<Vec<u8>> {
    loop {
        let length = client.read_u32().await?;
        let startup = body(client, Vec::new(), length).await?;
        if startup != TLS_REQUEST {
            return Ok(startup);
        }
        client.write_all(b"N").await?;
    }
}

/// The next message, whole, and its kind; `None` at the end of the stream.
async fn message(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<(u8, Vec<u8>)>> {
    let Ok(kind) = stream.read_u8().await else {
        return Ok(None);
    };
    let length = stream.read_u32().await?;
    Ok(Some((kind, body(stream, vec![kind], length).await?)))
}

async fn body(stream: &mut (impl AsyncRead + Unpin), mut message: Vec<u8>, length: u32) -> Result<Vec<u8>> {
    let rest = usize::try_from(length)?.saturating_sub(4);
    if rest > MESSAGE_BYTES_MAX {
        bail!("a message of {rest} bytes");
    }
    message.extend_from_slice(&length.to_be_bytes());
    let head = message.len();
    message.resize(head + rest, 0);
    stream.read_exact(message.get_mut(head..).unwrap_or_default()).await?;
    Ok(message)
}
