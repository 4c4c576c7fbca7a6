-- purpose: user accounts and service keys
-- compatible-from: 20261201030300
-- phase: expand

create table occ.users (
  id text collate "C" not null
    constraint users_id_format
      check (id ~ '^usr_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  email text collate "C" not null
    constraint users_email_rule check (length(email) between 3 and 320 and email = lower(email)
      and email ~ '^[^@[:space:]]+@[^@[:space:]]+$'),
  name text collate "C" not null
    constraint users_name_rule check (length(name) between 1 and 200 and name = btrim(name)
      and name !~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029]'),
  password_hash text collate "C"
    constraint users_password_hash_format check (password_hash like '$argon2id$%' and length(password_hash) <= 512),
  version integer not null default 1
    constraint users_version_range check (version between 1 and 2147483647),
  method_version integer not null default 1
    constraint users_method_version_range check (method_version between 1 and 2147483647),
  disabled_at timestamptz,
  principal_id text collate "C" not null
    constraint users_principal_id_format
      check (principal_id ~ '^prn_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint users_pkey primary key (id),
  constraint users_email_key unique (email),
  constraint users_principal_id_key unique (principal_id),
  constraint users_principal_id_fkey foreign key (principal_id) references occ.iam_identities (id)
    on update restrict on delete restrict
);

comment on table occ.users is 'Accounts of humans; the principal carries what they may do.';
comment on column occ.users.id is 'User id, the subject of its principal.';
comment on column occ.users.email is 'Sign-in name in lower case.';
comment on column occ.users.name is 'Display name.';
comment on column occ.users.password_hash is 'Argon2id string; absent when the user signs in elsewhere.';
comment on column occ.users.version is 'Grows with each update.';
comment on column occ.users.method_version is 'Grows when the sign-in method changes; ends older sessions.';
comment on column occ.users.disabled_at is 'Set while the user may not sign in.';
comment on column occ.users.principal_id is 'The user''s principal.';
comment on column occ.users.created_at is 'Creation.';
comment on column occ.users.updated_at is 'Last change.';

grant select, insert, delete,
  update (name, password_hash, version, method_version, disabled_at, updated_at)
  on occ.users to occ_app;

create table occ.service_keys (
  id text collate "C" not null
    constraint service_keys_id_format
      check (id ~ '^key_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'),
  service_principal_id text collate "C" not null,
  keyable boolean not null default true
    constraint service_keys_keyable_true check (keyable),
  namespace_id text collate "C",
  name text collate "C" not null
    constraint service_keys_name_rule check (length(name) between 1 and 32 and name ~ '[^[:space:]]'),
  prefix text collate "C" not null
    constraint service_keys_prefix_format check (prefix ~ '^occ_[A-Za-z0-9_-]{8}$'),
  key_hash bytea not null
    constraint service_keys_key_hash_length check (octet_length(key_hash) = 32),
  created_by text collate "C" not null
    constraint service_keys_created_by_length check (length(created_by) between 1 and 200),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  last_used_at timestamptz,
  revoked_at timestamptz,
  constraint service_keys_pkey primary key (id),
  constraint service_keys_key_hash_key unique (key_hash),
  constraint service_keys_lifetime_range check (expires_at between created_at + interval '24 hours'
    and created_at + interval '8760 hours'),
  constraint service_keys_service_principal_fkey foreign key (service_principal_id, keyable)
    references occ.iam_identities (id, keyable) on update restrict on delete restrict,
  constraint service_keys_namespace_id_fkey foreign key (namespace_id) references occ.namespaces (id)
    on update restrict on delete restrict
);

comment on table occ.service_keys is 'Keys of ServicePrincipals; only a hash is stored.';
comment on column occ.service_keys.id is 'Key id.';
comment on column occ.service_keys.service_principal_id is 'Owner; never an Agent''s own identity.';
comment on column occ.service_keys.keyable is 'Always true: half of the key that shuts Agents'' identities out.';
comment on column occ.service_keys.namespace_id is 'Scope, equal to that of its owner.';
comment on column occ.service_keys.name is 'Display name.';
comment on column occ.service_keys.prefix is 'First 12 characters of the key.';
comment on column occ.service_keys.key_hash is 'SHA-256 of the key.';
comment on column occ.service_keys.created_by is 'Identity that issued it.';
comment on column occ.service_keys.created_at is 'Issue.';
comment on column occ.service_keys.expires_at is 'End, 1 to 365 days after the issue.';
comment on column occ.service_keys.last_used_at is 'Last use, written at most once in 5 minutes.';
comment on column occ.service_keys.revoked_at is 'Set once by revocation.';

create index service_keys_service_principal on occ.service_keys (service_principal_id, keyable);
create index service_keys_namespace_id on occ.service_keys (namespace_id);
grant select, insert, delete, update (last_used_at, revoked_at) on occ.service_keys to occ_app;
