//! Tests, as bytes, of every error that a client can cause before the database is asked.

use anyhow::Result;

use super::{Scene, TABLE};

const KEY: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test]
async fn each_error_is_hoglakes_as_bytes() -> Result<()> {
    let scene = Scene::new().await?;
    let json = scene.client.with("content-type", "application/json");
    let drop = format!("{TABLE}/partitions/drop");
    let body = |rest: &str| {
        format!(
            r#"{{"idempotency_key": "{KEY}", "partitions": [{{"partition_values": ["1"]}}]{rest}}}"#
        )
    };
    let too_deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let table = [
        (
            "POST",
            drop.clone(),
            "{".to_owned(),
            400,
            r#"{"detail":"the body is not what it should be: EOF while parsing an object at line 1 column 1","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            String::new(),
            400,
            r#"{"detail":"the body is not what it should be: EOF while parsing a value at line 1 column 0","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            body(r#", "dryrun": true"#),
            400,
            r#"{"detail":"the body is not what it should be: dryrun: unknown field `dryrun`, expected one of `partitions`, `idempotency_key`, `expected_table_uuid`, `read_snapshot`, `author`, `message`, `dry_run`, `fence` at line 1 column 113","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            body(r#", "fence": false, "fence": true"#),
            400,
            r#"{"detail":"the body is not what it should be: duplicate field `fence` at line 1 column 128","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            r#"{"partitions": [{"partition_values": ["1"]}]}"#.into(),
            400,
            r#"{"detail":"the body is not what it should be: missing field `idempotency_key` at line 1 column 45","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            r#"{"partitions": [{"partition_values": ["1"], "like": "x"}]}"#.into(),
            400,
            r#"{"detail":"the body is not what it should be: partitions[0].like: unknown field `like`, expected one of `partition_values`, `spec_id`, `literal` at line 1 column 50","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            r#"{"partitions": [{"partition_values": [1]}]}"#.into(),
            400,
            r#"{"detail":"the body is not what it should be: partitions[0].partition_values[0]: invalid type: integer `1`, expected a string at line 1 column 39","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            format!("{} x", body("")),
            400,
            r#"{"detail":"the body goes on after its JSON: trailing characters at line 1 column 106","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            format!(r#"{{"idempotency_key": "{KEY}", "partitions": [[["1"]]]}}"#),
            400,
            r#"{"detail":"the body is not what it should be: partitions[0]: invalid type: sequence, expected an object at line 1 column 75","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            too_deep,
            400,
            r#"{"detail":"the body is not what it should be: invalid type: sequence, expected an object at line 1 column 0","error":"bad_request"}"#,
        ),
        (
            "POST",
            drop.clone(),
            body(r#", "author": "a\u0000b""#),
            422,
            r#"{"detail":"no text can have a NUL in it","error":"validation"}"#,
        ),
        (
            "POST",
            drop.clone(),
            body(&format!(r#", "author": "{}""#, "a".repeat(1025))),
            422,
            r#"{"detail":"author has 1025 bytes, and at most 1024 are allowed","error":"validation"}"#,
        ),
        (
            "POST",
            drop.clone(),
            body(&format!(r#", "message": "{}""#, "a".repeat(8193))),
            422,
            r#"{"detail":"message has 8193 bytes, and at most 8192 are allowed","error":"validation"}"#,
        ),
        (
            "POST",
            format!("{drop}?dry_run=true"),
            body(""),
            400,
            r#"{"detail":"Failed to deserialize query string: dry_run: unknown field `dry_run`, there are no fields","error":"bad_request"}"#,
        ),
        (
            "POST",
            format!("{TABLE}/truncate?expected_uuid={KEY}"),
            String::new(),
            400,
            r#"{"detail":"Failed to deserialize query string: expected_uuid: unknown field `expected_uuid`, expected `expected_table_uuid`","error":"bad_request"}"#,
        ),
        (
            "POST",
            format!("{TABLE}/truncate"),
            format!(r#"{{"idempotency_key": "{KEY}"}}"#),
            400,
            r#"{"detail":"expected_table_uuid is missing: a truncate names the UUID of the table that it empties","error":"bad_request"}"#,
        ),
        (
            "POST",
            format!("{TABLE}/truncate?expected_table_uuid=7"),
            String::new(),
            400,
            r#"{"detail":"Failed to deserialize query string: expected_table_uuid: UUID parsing failed: invalid length: found 1","error":"bad_request"}"#,
        ),
        (
            "POST",
            "/v1/catalogs/a%00b/maintenance/partition-retention".into(),
            String::new(),
            400,
            r#"{"detail":"a name in the path has a NUL in it","error":"bad_request"}"#,
        ),
        (
            "POST",
            "/catalogs/%ff/maintenance/partition-retention".into(),
            String::new(),
            400,
            r#"{"detail":"Invalid URL: Invalid UTF-8 in `catalog`","error":"bad_request"}"#,
        ),
        (
            "GET",
            "/v1/catalogs/lake/maintenance/partition-retention/7".into(),
            String::new(),
            400,
            r#"{"detail":"Invalid URL: Cannot parse `id` with value `7`: UUID parsing failed: invalid length: found 1","error":"bad_request"}"#,
        ),
        (
            "GET",
            "/v1/catalogs/lake".into(),
            String::new(),
            404,
            r#"{"detail":"there is no such path","error":"not_found"}"#,
        ),
        (
            "GET",
            "/v2/livez".into(),
            String::new(),
            404,
            r#"{"detail":"there is no such path","error":"not_found"}"#,
        ),
        (
            "DELETE",
            format!("{TABLE}/truncate"),
            String::new(),
            405,
            r#"{"detail":"the path does not have this method","error":"method_not_allowed"}"#,
        ),
        (
            "POST",
            "/livez".into(),
            String::new(),
            405,
            r#"{"detail":"the path does not have this method","error":"method_not_allowed"}"#,
        ),
    ];
    let mut others = Vec::new();
    for (method, path, body, status, expected) in table {
        let answer = json.send(method, &path, body.as_bytes()).await?;
        assert_eq!(answer.header("content-type"), Some("application/json"), "{path}");
        if answer.told() != (status, expected) {
            others.push(format!("{method} {path} {body}: {} {}", answer.status, answer.body));
        }
    }
    assert_eq!(others, [""; 0], "{}", others.join("\n"));
    Ok(())
}

#[tokio::test]
async fn a_body_is_json_by_its_type_too() -> Result<()> {
    let scene = Scene::new().await?;
    let expected = r#"{"detail":"the content-type is not application/json","error":"bad_request"}"#;
    let drop = format!("{TABLE}/partitions/drop");
    for client in [
        scene.client.clone(),
        scene.client.with("content-type", "text/plain"),
        scene.client.with("content-type", "application/x-www-form-urlencoded"),
        scene.client.with("content-type", "application/jsonx"),
    ] {
        assert_eq!(client.send("POST", &drop, b"{}").await?.told(), (400, expected));
        let truncate = format!("{TABLE}/truncate");
        assert_eq!(client.send("POST", &truncate, b"{}").await?.told(), (400, expected));
    }
    let charset = scene.client.with("content-type", "Application/JSON; charset=utf-8");
    let answer = charset.send("POST", &drop, b"{}").await?;
    assert!(answer.body.contains("missing field `partitions`"), "{answer:?}");
    Ok(())
}

/// A page that a browser on this host shows could send a form to the port: without tokens that
/// would be enough to truncate a table.
#[tokio::test]
async fn without_tokens_pages_of_browsers_are_not_served() -> Result<()> {
    let scene = Scene::new().await?;
    let truncate = format!("{TABLE}/truncate");
    let page =
        r#"{"detail":"without tokens, pages of browsers are not served","error":"forbidden"}"#;
    for (header, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let answer = scene.client.with(header, value).send("POST", &truncate, b"").await?;
        assert_eq!(answer.told(), (403, page), "{header}");
    }
    let stream = &mut scene.client.connect().await?;
    let request = format!("POST {truncate} HTTP/1.1\r\nhost: rebound.example:80\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(stream, request.as_bytes()).await?;
    let host =
        r#"{"detail":"without tokens, the host is an address or localhost","error":"forbidden"}"#;
    assert_eq!(super::client::Answer::read(stream).await?.told(), (403, host));
    Ok(())
}

/// The first of two would be checked, and a proxy may have gone by the second.
#[tokio::test]
async fn two_hosts_are_refused_whatever_is_asked() -> Result<()> {
    let scene = Scene::new().await?;
    let refused = r#"{"detail":"the request has more than one Host header","error":"bad_request"}"#;
    for second in ["rebound.example", "localhost", ""] {
        let twice = scene.client.with("Host", second);
        for (method, path) in [("GET", "/metrics"), ("GET", "/livez"), ("GET", "/nowhere")] {
            assert_eq!(twice.send(method, path, b"").await?.told(), (400, refused), "{path}");
        }
        let truncate = format!("{TABLE}/truncate");
        assert_eq!(twice.send("POST", &truncate, b"").await?.told(), (400, refused));
    }
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_is_named() -> Result<()> {
    let scene = Scene::new().await?;
    for (path, detail) in [
        (
            "/v1/catalogs/sea/namespaces/events/tables/raw/partition-retention",
            r#"there is no catalog \"sea\""#,
        ),
        (
            "/v1/catalogs/lake/namespaces/events/tables/r%20w/partition-retention",
            r#"there is no table events.r w in catalog \"lake\""#,
        ),
        (
            "/catalogs/lake/namespaces/events/tables/raw/partition-retention",
            "table events.raw has no policy",
        ),
        (
            "/v1/catalogs/lake/namespaces/events/tables/raw/partition-retention/plan",
            "table events.raw has no policy",
        ),
    ] {
        let expected = format!(r#"{{"detail":"{detail}","error":"not_found"}}"#);
        assert_eq!(scene.client.get(path).await?.told(), (404, expected.as_str()), "{path}");
    }
    let pass = "/v1/catalogs/sea/maintenance/partition-retention";
    let expected = r#"{"detail":"there is no catalog \"sea\"","error":"not_found"}"#;
    assert_eq!(scene.client.send("POST", pass, b"").await?.told(), (404, expected));
    Ok(())
}
