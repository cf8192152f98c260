//! Parsing JSON with a bound on memory.
//!
//! Unknown fields are kept as trees of values, which take up to 150 times as much memory as their text. Therefore each
//! value is charged with its size before it is stored.

use std::{cell::Cell, fmt};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Memory for known fields as a multiple of the text: a record takes about four times as much as its text.
const TIMES_TEXT: usize = 4;
/// Memory for a value of unknown meaning, bytes: it is stored twice while it is read, in vectors that grow by doubling.
const VALUE_BYTES: usize = 160;
/// Memory for the first entries of an object of unknown meaning, bytes: a node of a B-tree and a vector.
const OBJECT_BYTES: usize = 900;

/// Parses a JSON document that takes at most about `base_bytes` of memory more than four times the size of its text.
///
/// # Errors
/// If it is not JSON, does not have this type, or takes too much memory.
pub fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8], base_bytes: usize) -> serde_json::Result<T> {
    let left = Cell::new(base_bytes + TIMES_TEXT * text.len());
    let mut inner = serde_json::Deserializer::from_slice(text);
    let value = T::deserialize(Bounded { inner: &mut inner, left: &left, is_unknown: false })?;
    inner.end()?;
    Ok(value)
}

/// A part of the parser, which charges what passes through it.
struct Bounded<'b, T> {
    inner: T,
    /// Memory that is left, bytes.
    left: &'b Cell<usize>,
    /// True inside a value of unknown meaning.
    is_unknown: bool,
}

impl<T> Bounded<'_, T> {
    /// Takes this much memory if the value has no known type.
    fn charge_unknown<E: Error>(&self, bytes: usize) -> Result<(), E> {
        if self.is_unknown { self.charge(bytes) } else { Ok(()) }
    }

    fn charge<E: Error>(&self, bytes: usize) -> Result<(), E> {
        let left = self.left.get().checked_sub(bytes);
        self.left.set(left.ok_or_else(|| E::custom("its fields would take much more memory than its text"))?);
        Ok(())
    }
}

/// Deserializer methods that pass on the visitor.
macro_rules! deserialize {
    ($($method:ident($($name:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            let Self { inner, left, is_unknown } = self;
            inner.$method($($name,)* Bounded { inner: visitor, left, is_unknown })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Bounded<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(Bounded { inner: visitor, left: self.left, is_unknown: true })
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    deserialize! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128() deserialize_f32()
        deserialize_f64() deserialize_char() deserialize_str() deserialize_string() deserialize_bytes()
        deserialize_byte_buf() deserialize_option() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}

/// Visitor methods for values without parts.
macro_rules! visit {
    ($($method:ident: $type:ty)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.charge_unknown(VALUE_BYTES)?;
            self.inner.$method(value)
        }
    )*};
}

/// Visitor methods for text.
macro_rules! visit_text {
    ($($method:ident: $type:ty)*) => {$(
        fn $method<E: Error>(self, text: $type) -> Result<V::Value, E> {
            self.charge_unknown(VALUE_BYTES + 2 * text.len())?;
            self.inner.$method(text)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Bounded<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool: bool visit_i8: i8 visit_i16: i16 visit_i32: i32 visit_i64: i64 visit_i128: i128 visit_u8: u8
        visit_u16: u16 visit_u32: u32 visit_u64: u64 visit_u128: u128 visit_f32: f32 visit_f64: f64 visit_char: char
    }
    visit_text! {
        visit_str: &str visit_borrowed_str: &'de str visit_string: String
        visit_bytes: &[u8] visit_borrowed_bytes: &'de [u8] visit_byte_buf: Vec<u8>
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.charge_unknown(VALUE_BYTES)?;
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self { inner: visitor, left, is_unknown } = self;
        visitor.visit_some(Bounded { inner, left, is_unknown })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        let Self { inner: visitor, left, is_unknown } = self;
        visitor.visit_newtype_struct(Bounded { inner, left, is_unknown })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.charge(if self.is_unknown { VALUE_BYTES } else { size_of::<V::Value>() })?;
        let Self { inner: visitor, left, is_unknown } = self;
        visitor.visit_seq(Bounded { inner, left, is_unknown })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.charge(if self.is_unknown { OBJECT_BYTES } else { size_of::<V::Value>() })?;
        let Self { inner: visitor, left, is_unknown } = self;
        visitor.visit_map(Bounded { inner, left, is_unknown })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        let Self { inner: visitor, left, is_unknown } = self;
        visitor.visit_enum(Bounded { inner, left, is_unknown })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Bounded<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        let Self { inner: seed, left, is_unknown } = self;
        seed.deserialize(Bounded { inner, left, is_unknown })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = Bounded { inner: seed, left: self.left, is_unknown: self.is_unknown };
        self.inner.next_element_seed(seed)
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = Bounded { inner: seed, left: self.left, is_unknown: self.is_unknown };
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let seed = Bounded { inner: seed, left: self.left, is_unknown: self.is_unknown };
        self.inner.next_value_seed(seed)
    }
}

impl<'de, 'b, A: EnumAccess<'de>> EnumAccess<'de> for Bounded<'b, A> {
    type Error = A::Error;
    type Variant = Bounded<'b, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let Self { inner, left, is_unknown } = self;
        let (value, inner) = inner.variant_seed(Bounded { inner: seed, left, is_unknown })?;
        Ok((value, Bounded { inner, left, is_unknown }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Bounded<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let Self { inner, left, is_unknown } = self;
        inner.newtype_variant_seed(Bounded { inner: seed, left, is_unknown })
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let Self { inner, left, is_unknown } = self;
        inner.tuple_variant(len, Bounded { inner: visitor, left, is_unknown })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let Self { inner, left, is_unknown } = self;
        inner.struct_variant(fields, Bounded { inner: visitor, left, is_unknown })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{Campaign, Machine, Record, Series};

    fn from_slice<'de, T: Deserialize<'de>>(text: &'de [u8]) -> serde_json::Result<T> {
        super::from_slice(text, 64 << 20)
    }

    #[test]
    fn documents_are_read_as_by_serde_json() {
        let text = serde_json::to_vec(&Series { notes: vec!["a".into()], ..Series::default() }).unwrap();
        assert_eq!(from_slice::<Series>(&text).unwrap(), serde_json::from_slice::<Series>(&text).unwrap());
        let text = br#"{"a": [1, -2, 0.5, true, null, "x"], "b": {"c": {}}}"#;
        assert_eq!(from_slice::<Value>(text).unwrap(), serde_json::from_slice::<Value>(text).unwrap());
        for wrong in [&b"{\"schema\": 1}"[..], b"{} {}", b"[", b""] {
            let error = |result: serde_json::Result<Record>| result.unwrap_err().to_string();
            assert_eq!(error(from_slice(wrong)), error(serde_json::from_slice(wrong)));
        }
    }

    #[test]
    fn refuses_unknown_fields_that_grow_in_memory() {
        let error = |text: &str| from_slice::<Machine>(text.as_bytes()).unwrap_err().to_string();
        for (value, count) in [("{\"\":0},", 100_000), ("0,", 600_000), ("[],", 600_000), ("\"\",", 600_000)] {
            let text = format!("{{\"from_the_future\":[{}0]}}", value.repeat(count));
            assert!(error(&text).contains("much more memory than its text"), "{value}: {}", error(&text));
        }
        let kept = format!("{{\"from_the_future\":[{}0]}}", "0,".repeat(100_000));
        assert_eq!(
            from_slice::<Machine>(kept.as_bytes()).unwrap().extra["from_the_future"].as_array().unwrap().len(),
            100_001
        );
        // Known lists of large entries, too.
        let scenarios = "{\"name\":\"\"},".repeat(1_000_000);
        assert!(from_slice::<Campaign>(format!("{{\"scenarios\":[{scenarios}").as_bytes()).is_err());
    }
}
