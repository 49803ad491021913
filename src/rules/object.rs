//! Reads JSON objects, for bodies and table properties. Serde would accept an array too, field by field in
//! the order of their declaration, which is no part of the interface.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

/// A value that is written as an object and as nothing else.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ByKeys(PhantomData))
    }
}

struct ByKeys<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ByKeys<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// For a list of objects.
///
/// # Errors
/// As the deserializer reports them.
pub fn each<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let objects = Vec::<Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: i64,
        b: i64,
    }

    #[derive(Debug, Deserialize)]
    struct Pairs {
        #[serde(deserialize_with = "each")]
        pairs: Vec<Pair>,
    }

    #[test]
    fn an_object_is_read_and_an_array_is_none() {
        let read = |text| serde_json::from_str::<Object<Pair>>(text);
        assert_eq!(read(r#"{"b": 2, "a": 1}"#).unwrap().0, Pair { a: 1, b: 2 });
        let error = read("[1, 2]").unwrap_err().to_string();
        assert!(error.ends_with("expected an object at line 1 column 0"), "{error}");
    }

    #[test]
    fn a_list_has_objects_alone() {
        let read = |text| serde_json::from_str::<Pairs>(text);
        let pairs = read(r#"{"pairs": [{"a": 1, "b": 2}, {"a": 3, "b": 4}]}"#).unwrap().pairs;
        assert_eq!(pairs, [Pair { a: 1, b: 2 }, Pair { a: 3, b: 4 }]);
        assert!(read(r#"{"pairs": [[1, 2]]}"#).is_err());
    }
}
