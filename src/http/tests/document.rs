//! Compares the OpenAPI document with the paths and the types.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ask, bytes, state};
use crate::explicit::call::{
    DropAnswer, DropBody, PartitionAnswer, PartitionItem, TruncateAnswer, TruncateBody,
};
use crate::feed::ChangesPage;
use crate::http::policies::PolicyBody;
use crate::http::routes::{document, router};

fn openapi() -> Value {
    serde_json::from_str(document()).expect("JSON")
}

#[tokio::test]
async fn every_documented_path_is_there_with_and_without_version() {
    let document = openapi();
    let paths = document["paths"].as_object().expect("paths");
    let mut seen = BTreeSet::new();
    for (template, methods) in paths {
        for method in methods.as_object().expect("methods").keys() {
            let path = template.replace("{id}", "11111111-2222-4333-8444-555555555555");
            let path = path.replace("{hold_id}", "7").replace(['{', '}'], "");
            for path in [path.clone(), format!("/v1{path}")] {
                let response = ask(router(state()), &method.to_uppercase(), &path, "").await;
                let status = response.status().as_u16();
                let body = bytes(response).await;
                assert!(status != 405 && !body.contains("no such path"), "{method} {path}: {body}");
            }
            seen.insert(format!("{} {template}", method.to_uppercase()));
        }
    }
    let table = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}";
    let pass = "/catalogs/{catalog}/maintenance/partition-retention";
    let expected = [
        format!("GET {table}/changes"),
        format!("DELETE {table}/partition-retention"),
        format!("GET {table}/partition-retention"),
        format!("GET {table}/partition-retention/drops"),
        format!("GET {table}/partition-retention/history"),
        format!("GET {table}/partition-retention/plan"),
        format!("PUT {table}/partition-retention"),
        format!("GET {table}/partitions/explain"),
        format!("GET {table}/holds"),
        format!("POST {table}/holds"),
        format!("PUT {table}/pause"),
        format!("DELETE {table}/pause"),
        "PUT /catalogs/{catalog}/pause".to_owned(),
        "DELETE /catalogs/{catalog}/pause".to_owned(),
        "GET /catalogs/{catalog}/approvals".to_owned(),
        "POST /catalogs/{catalog}/approvals".to_owned(),
        "PUT /pause".to_owned(),
        "DELETE /pause".to_owned(),
        "GET /pauses".to_owned(),
        "GET /holds".to_owned(),
        "DELETE /holds/{hold_id}".to_owned(),
        format!("POST {table}/partitions/drop"),
        format!("POST {table}/truncate"),
        format!("POST {pass}"),
        format!("GET {pass}/{{id}}"),
        format!("POST {pass}/verify"),
        "GET /healthz".to_owned(),
        "GET /livez".to_owned(),
        "GET /metrics".to_owned(),
        "GET /openapi.json".to_owned(),
    ];
    assert_eq!(seen, expected.into());
}

/// The properties of a schema.
fn properties(name: &str) -> BTreeSet<String> {
    let schema = &openapi()["components"]["schemas"][name];
    let parts = schema["allOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let found = parts.iter().filter_map(|part| part["properties"].as_object());
    found.flat_map(|properties| properties.keys().cloned()).collect()
}

/// The fields that serde knows of a body that refuses all others: it lists them.
fn fields<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
    let refusal = serde_json::from_value::<T>(json!({"?": 1})).err().expect("refused").to_string();
    refusal.split('`').skip(1).step_by(2).filter(|name| *name != "?").map(str::to_owned).collect()
}

/// The fields that a value is written with.
fn written(value: impl serde::Serialize) -> BTreeSet<String> {
    let value = serde_json::to_value(value).expect("JSON");
    value.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn the_document_has_every_field_of_the_bodies() {
    assert_eq!(properties("DropBody"), fields::<DropBody>());
    assert_eq!(properties("PartitionItem"), fields::<PartitionItem>());
    assert_eq!(properties("TruncateBody"), fields::<TruncateBody>());
    assert_eq!(properties("PolicyBody"), fields::<PolicyBody>());
    let partition = PartitionAnswer {
        spec_id: 1,
        partition_values: vec![],
        files_ended: 0,
        delete_files_ended: 0,
        records: 0,
        bytes: 0,
    };
    assert_eq!(properties("PartitionAnswer"), written(&partition));
    let answer = DropAnswer {
        snapshot_id: 1,
        schema_version: 1,
        committed: true,
        replayed: false,
        // It is left out where it is false.
        undone: true,
        files_ended: 0,
        delete_files_ended: 0,
        records: 0,
        bytes: 0,
        partitions: vec![partition],
    };
    assert_eq!(properties("DropAnswer"), written(&answer));
    let answer = TruncateAnswer { snapshot_id: 1, schema_version: 1, undone: true };
    assert_eq!(properties("TruncateAnswer"), written(answer));
    let page = ChangesPage {
        table_uuid: uuid::Uuid::nil(),
        from_snapshot: 0,
        to_snapshot: 1,
        files: vec![],
        delete_files: vec![],
        ended_files: Some(vec![]),
        next_cursor: Some(String::new()),
    };
    assert_eq!(properties("ChangesPage"), written(&page));
}

/// Whatever a schema refers to is there, and each says what it is.
#[test]
fn the_document_is_whole() {
    let document = openapi();
    let text = document.to_string();
    let known = document["components"]["schemas"].as_object().expect("schemas");
    let mut referred = BTreeSet::new();
    for reference in text.split("#/components/schemas/").skip(1) {
        referred.insert(reference.split('"').next().expect("a name").to_owned());
    }
    assert_eq!(referred, known.keys().cloned().collect());
    for (name, schema) in known {
        assert!(schema["description"].is_string(), "{name} is not described");
    }
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}
