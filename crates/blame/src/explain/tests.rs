//! Explanations held to scenarios written by hand.

mod edge_cases;
mod gaps;
mod kinds;
mod properties;
mod scenario;
mod timeline;
mod work;
