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

        urr_kernel::named_enum!($type { $($variant => $name),* });
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

        urr_kernel::named_enum!($type { $($variant => $name,)* Other => "other" });
    };
}
