//! Enums as they travel: each variant has one name on the wire.

/// Declares an enum with its names on the wire. With `open enum` it gets a variant `Other`, for
/// readers that must survive values that are newer than they are.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident { $($(#[$variant_meta:meta])* $variant:ident => $name:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $type {
            $($(#[$variant_meta])* #[serde(rename = $name)] $variant,)*
        }

        impl $type {
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                }
            }

            pub fn parse(name: &str) -> Option<$type> {
                $type::ALL.iter().copied().find(|value| value.as_str() == name)
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
    (
        $(#[$meta:meta])*
        pub open enum $type:ident { $($(#[$variant_meta:meta])* $variant:ident => $name:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $type {
            $($(#[$variant_meta])* #[serde(rename = $name)] $variant,)*
            /// A value that this program does not know. It is read, never sent.
            #[serde(other, rename = "other")]
            Other,
        }

        impl $type {
            /// Every value that can be sent.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)*
                    $type::Other => "other",
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
