//! House rules of the schema, read from the catalog: what has no name, comment or index is named here.

use occ_tests::database::Database;

/// Rule, then a query for everything that breaks it.
const RULES: [(&str, &str); 7] = [
    (
        "every table and column is described",
        "select c.relname || coalesce('.' || a.attname, '')
           from pg_class c left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          where c.relnamespace = 'occ'::regnamespace and c.relkind = 'r'
            and (obj_description(c.oid, 'pg_class') is null or col_description(c.oid, a.attnum) is null)",
    ),
    (
        "every function is described",
        "select proname::text from pg_proc
          where pronamespace = 'occ'::regnamespace and obj_description(oid, 'pg_proc') is null",
    ),
    (
        "every constraint is named after its table",
        "select c.relname || ': ' || conname from pg_constraint join pg_class c on c.oid = conrelid
          where connamespace = 'occ'::regnamespace and contype in ('c', 'f', 'p', 'u')
            and (conname not like c.relname || '\\_%' or conname ~ '_check\\d*$')",
    ),
    (
        "every foreign key has an index on its columns",
        "select conname::text from pg_constraint k
          where contype = 'f' and connamespace = 'occ'::regnamespace and not exists (
            select from pg_index i
             where i.indrelid = k.conrelid
               and (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey
               and (i.indkey::int2[])[0:cardinality(k.conkey) - 1] <@ k.conkey)",
    ),
    (
        "every foreign key says what it does, and only two wait for the commit",
        "select conname::text from pg_constraint
          where contype = 'f' and connamespace = 'occ'::regnamespace
            and case when condeferrable
                  then conname not in ('agents_service_principal_fkey', 'iam_identities_agent_fkey')
                  else confupdtype <> 'r' or confdeltype not in ('r', 'c') end",
    ),
    (
        "identifiers compare by bytes",
        "select c.relname || '.' || a.attname
           from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          where c.relnamespace = 'occ'::regnamespace and c.relkind = 'r' and a.atttypid = 'text'::regtype
            and a.attcollation <> 'pg_catalog.\"C\"'::regcollation",
    ),
    (
        "rights are lent by two functions only, whose names cannot be captured",
        "select proname::text from pg_proc
          where pronamespace = 'occ'::regnamespace and prosecdef
            and (proname not in ('finalize_agent_deletion', 'work_take_over')
              or pg_get_userbyid(proowner) <> 'occ_migrator'
              or proconfig is distinct from array['search_path=pg_catalog, occ, pg_temp'])",
    ),
];

#[tokio::test]
async fn the_schema_keeps_the_house_rules() {
    let database = Database::new().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    for (rule, query) in RULES {
        let broken: Vec<String> = sqlx::query_scalar(query).fetch_all(&mut db).await.unwrap();
        assert_eq!(broken, Vec::<String>::new(), "{rule}");
    }
}
