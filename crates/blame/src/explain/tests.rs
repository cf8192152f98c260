//! Explanations held to scenarios written by hand.

mod gaps;
mod golden;
mod kinds;
mod nasty;
mod properties;
mod scenario;
mod work;
