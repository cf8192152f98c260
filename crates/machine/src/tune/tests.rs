mod apply;
mod fake;
mod plan;
mod table;
mod values;

use super::Setting;

fn ids(settings: &[Setting]) -> Vec<&str> {
    settings.iter().map(|setting| setting.id).collect()
}
