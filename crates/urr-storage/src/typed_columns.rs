//! Ids and enums of the services as columns and parameters.

use urr_kernel::{Language, Tier};

/// Reads a struct whose fields are named like the columns: `from_row!(row => Venue { id, name })`.
/// Fields with another source follow a semicolon: `from_row!(row => Sale { id; tickets: Vec::new() })`.
#[macro_export]
macro_rules! from_row {
    ($row:expr => $type:ident { $($field:ident),+ $(,)? $(; $($other:ident: $value:expr),+ $(,)?)? }) => {
        $type { $($field: $row.get(stringify!($field))?,)+ $($($other: $value,)+)? }
    };
}

/// Lets an id type of [`urr_kernel::define_id!`] be a column and a parameter:
/// `row.get::<ReservationId>("id")?` and `params![reservation_id]`.
#[macro_export]
macro_rules! storable_id {
    ($($name:ident),+ $(,)?) => {$(
        impl $crate::FromColumn for $name {
            fn from_column(column: $crate::Value<'_>) -> Result<$name, String> {
                <::urr_kernel::Uuid as $crate::FromColumn>::from_column(column).map($name)
            }
        }

        impl $crate::ToValue for $name {
            fn to_value(&self) -> $crate::Value<'_> {
                $crate::Value::Uuid(self.0)
            }
        }
    )+};
}

/// Gives the variants of an enum their names ([`urr_kernel::named_enum!`]) and lets it be a column
/// and a parameter. A stored text that is not the name of a variant is `StorageError::Decode`.
#[macro_export]
macro_rules! storable_enum {
    ($name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        ::urr_kernel::named_enum!($name { $($variant => $text),+ });
        $crate::storable_named!($name);
    };
}

/// Lets a type with `as_str` and `FromStr` be a text column and a parameter.
#[macro_export]
macro_rules! storable_named {
    ($name:ty) => {
        impl $crate::FromColumn for $name {
            fn from_column(column: $crate::Value<'_>) -> Result<$name, String> {
                match column {
                    $crate::Value::Text(text) => {
                        text.parse().map_err(|error| ::std::string::ToString::to_string(&error))
                    }
                    other => Err(format!("expected a text, found {other:?}")),
                }
            }
        }

        impl $crate::ToValue for $name {
            fn to_value(&self) -> $crate::Value<'_> {
                $crate::Value::Text(self.as_str())
            }
        }
    };
}

storable_named!(Tier);
storable_named!(Language);

#[cfg(test)]
mod tests {
    use urr_kernel::{Uuid, define_id};

    use crate::{FromColumn, ToValue, Value};

    define_id!(
        /// A thing for this test.
        ThingId
    );
    storable_id!(ThingId);

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Colour {
        Red,
        Blue,
    }
    storable_enum!(Colour { Red => "red", Blue => "blue" });

    #[test]
    fn ids_and_enums_are_columns_and_parameters() {
        let id = ThingId(Uuid::from_u128(7));
        assert_eq!(id.to_value(), Value::Uuid(id.0));
        assert_eq!(ThingId::from_column(Value::Bytes(id.0.as_bytes())), Ok(id));
        for colour in Colour::ALL {
            assert_eq!(colour.to_value(), Value::Text(colour.as_str()));
            assert_eq!(Colour::from_column(Value::Text(colour.as_str())), Ok(colour));
        }
    }

    #[test]
    fn a_stored_text_that_is_no_variant_is_an_error_and_not_a_panic() {
        let error = Colour::from_column(Value::Text("green")).unwrap_err();
        assert_eq!(error, "\"green\" is not a Colour");
        assert!(Colour::from_column(Value::Int(1)).is_err());
        assert!(Option::<Colour>::from_column(Value::Null).unwrap().is_none());
    }
}
