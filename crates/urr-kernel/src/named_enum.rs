//! Enums whose variants have a name in tables, messages and views.

/// A text that is not the name of any variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {type_name}")]
pub struct UnknownName {
    pub type_name: &'static str,
    pub text: String,
}

/// Gives the variants of an enum their names: `ALL`, `as_str`, `Display` and `FromStr`.
///
/// The enum is `Copy` and has no fields. A variant that is left out does not compile.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// pub enum PaymentStatus { Pending, Paid }
/// urr_kernel::named_enum!(PaymentStatus { Pending => "pending", Paid => "paid" });
///
/// assert_eq!("paid".parse(), Ok(PaymentStatus::Paid));
/// assert_eq!(PaymentStatus::Pending.to_string(), "pending");
/// ```
#[macro_export]
macro_rules! named_enum {
    ($name:ident { $($variant:ident => $text:literal),+ $(,)? }) => {
        impl $name {
            pub const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            /// The name in tables, messages and views.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::UnknownName;

            fn from_str(text: &str) -> Result<$name, $crate::UnknownName> {
                let mut all = $name::ALL.into_iter();
                all.find(|one| one.as_str() == text).ok_or_else(|| $crate::UnknownName {
                    type_name: stringify!($name),
                    text: text.to_owned(),
                })
            }
        }
    };
}
