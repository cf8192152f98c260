//! Explanations held to scenarios written by hand.

mod golden;
mod kinds;
mod nasty;
mod properties;
mod scenario;
