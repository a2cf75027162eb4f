//! A section of the configuration: its fields, and how each of them is read.

/// Declares the struct of a section and its `read`. A field is read by a method of
/// [`super::reader::SettingReader`] with a rule, under the key `<section>.<field>`; the names after
/// the rule are environment variables besides `URR_<SECTION>_<FIELD>`.
///
/// To add a setting, add its line here and its commented default in `config/default.toml`. `urr
/// config` shows it, and a test fails when one of the two is missing.
macro_rules! section {
    (
        $(#[$meta:meta])*
        $name:ident = $section:literal {
            $(
                $(#[$field_meta:meta])*
                $field:ident: $type:ty = $method:ident($rule:expr) $(, $alias:literal)*;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl $name {
            pub(in crate::config) fn read(
                read: &mut crate::config::reader::SettingReader,
            ) -> $name {
                $name {
                    $($field: read.$method(
                        concat!($section, ".", stringify!($field)),
                        &[$($alias),*],
                        $rule,
                    ),)*
                }
            }
        }
    };
}

pub(super) use section;
