//! The code that is the same for all loads, made from the list in `kinds/mod.rs`.

/// Makes the enum of all loads, the table of their descriptions, and the functions that call the right load.
macro_rules! loads {
    ($($module:ident::$load:ident),+ $(,)?) => {
        $(pub use $module::$load;)+

        /// A load with its options.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Load {
            $(
                #[doc = concat!("[`", stringify!($load), "`].")]
                $load($load),
            )+
        }

        /// Every load, in the order of the help text.
        pub const KINDS: &[Kind] = &[$($load::KIND),+];

        impl Load {
            /// Reads the load `name` with the options after its colon.
            pub(crate) fn parse(name: &str, options: &str) -> Result<Self, SpecError> {
                $(
                    if name == $load::KIND.name {
                        return $load::parse(options).map(Self::$load);
                    }
                )+
                Err(SpecError::UnknownLoad { name: name.to_owned() })
            }

            /// The load's name in [`KINDS`].
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$load(_) => $load::KIND.name,)+
                }
            }

            /// The text after the colon; empty if every option has its default.
            pub(crate) fn options(&self) -> String {
                match self {
                    $(Self::$load(load) => load.options(),)+
                }
            }

            /// Prepares the work on `cpus`.
            pub(crate) fn plan(&self, cpus: &CpuList) -> Result<Plan, LoadError> {
                match self {
                    $(Self::$load(load) => load.plan(cpus),)+
                }
            }

            /// True if the load takes all the CPU time that it can get.
            pub(crate) fn is_busy(&self) -> bool {
                match self {
                    $(Self::$load(load) => load.is_busy(),)+
                }
            }
        }

        /// The examples of all loads, as they are written, with the load that each gives.
        #[cfg(test)]
        pub(crate) fn examples() -> Vec<(String, Load)> {
            let mut examples = Vec::new();
            $(
                for (options, load) in $load::examples() {
                    let colon = if options.is_empty() { "" } else { ":" };
                    examples.push((format!("{}{colon}{options}", $load::KIND.name), Load::$load(load)));
                }
            )+
            examples
        }

        /// Any load.
        #[cfg(test)]
        pub(crate) fn any_load() -> impl proptest::strategy::Strategy<Value = Load> {
            use proptest::strategy::{Strategy, Union};

            Union::new([$($load::any().prop_map(Load::$load).boxed()),+])
        }
    };
}
pub(super) use loads;
