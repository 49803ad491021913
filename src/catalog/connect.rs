//! Sessions: how each of ours is set up, whatever the role's or the server's defaults are.

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};

/// Opens a session for the catalog in `schema`.
///
/// What is set: search_path (so that `hog_*` is found), UTC, statements of at most 60 s and
/// idle transactions of at most 30 s as the server's own sessions have them, waits for locks
/// of at most 10 s, writes allowed. Isolation is left alone: what depends on it names its own.
///
/// # Errors
/// As the driver reports them; see [`super::failure::Failure`].
pub async fn session(options: &PgConnectOptions, schema: &str) -> sqlx::Result<PgConnection> {
    let mut connection = options.connect().await?;
    let setup = format!(
        "set search_path = {}, pg_temp; set timezone = 'UTC'; \
         set statement_timeout = '60s'; set idle_in_transaction_session_timeout = '30s'; \
         set lock_timeout = '10s'; set default_transaction_read_only = off",
        quote_identifier(schema)
    );
    // The schema's name is quoted as an identifier; everything else is constant.
    sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut connection).await?;
    Ok(connection)
}

/// As [`session`], but unable to write anything.
pub async fn read_only_session(
    options: &PgConnectOptions,
    schema: &str,
) -> sqlx::Result<PgConnection> {
    let mut connection = session(options, schema).await?;
    sqlx::raw_sql("set default_transaction_read_only = on").execute(&mut connection).await?;
    Ok(connection)
}

/// Ends a session in good order; a session that is broken already is simply let go.
pub async fn close(connection: PgConnection) {
    if let Err(error) = connection.close().await {
        tracing::debug!(%error, "a database session did not end in good order");
    }
}

/// An identifier as SQL takes it literally.
pub fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    #[test]
    fn identifiers_are_quoted() {
        assert_eq!(super::quote_identifier("public"), "\"public\"");
        assert_eq!(super::quote_identifier("a\"; drop"), "\"a\"\"; drop\"");
    }
}
