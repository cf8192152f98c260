//! Compares explanations with hand-written scenarios.

mod edge_cases;
mod gaps;
mod kinds;
mod properties;
mod scenario;
mod timeline;
mod work;
