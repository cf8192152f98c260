//! The panel of the plugins in the web interface of MOD devices: the description, and the template of the panel. The rest of
//! it is in the folder `modgui` of this crate.
//!
//! The properties and the attributes are those of <http://moddevices.com/ns/modgui#> and of mod-ui.

use std::fmt::Write;

use amp::Parameter;

use crate::{
    describe::symbol,
    ports::{VARIANTS, Variant},
};

/// Name of the file with the description.
pub const DESCRIPTION: &str = "modgui.ttl";

/// A part of the panel: its title, the switch of its stage, and its knobs, each with its label.
struct Group {
    title: &'static str,
    switch: Option<Parameter>,
    knobs: &'static [(Parameter, &'static str)],
}

/// The parts of the panel. The other parameters are in the settings of the plugin, which the host shows.
const GROUPS: [Group; 7] = [
    Group { title: "Input", switch: None, knobs: &[(Parameter::InputGain, "Gain")] },
    Group { title: "Gate", switch: Some(Parameter::GateOn), knobs: &[(Parameter::GateThreshold, "Threshold")] },
    Group {
        title: "Drive",
        switch: Some(Parameter::DriveOn),
        knobs: &[(Parameter::DriveGain, "Gain"), (Parameter::DriveTone, "Tone"), (Parameter::DriveLevel, "Level")],
    },
    Group {
        title: "Tone",
        switch: Some(Parameter::ToneOn),
        knobs: &[(Parameter::Bass, "Bass"), (Parameter::Middle, "Middle"), (Parameter::Treble, "Treble")],
    },
    Group {
        title: "Delay",
        switch: Some(Parameter::DelayOn),
        knobs: &[(Parameter::DelayTime, "Time"), (Parameter::DelayFeedback, "Feedback"), (Parameter::DelayMix, "Mix")],
    },
    Group {
        title: "Reverb",
        switch: Some(Parameter::ReverbOn),
        knobs: &[(Parameter::ReverbDecay, "Decay"), (Parameter::ReverbMix, "Mix")],
    },
    Group { title: "Output", switch: None, knobs: &[(Parameter::OutputGain, "Gain")] },
];

/// The files of the panel, each with its path in the bundle and its bytes.
#[must_use]
pub fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (DESCRIPTION, description().into_bytes()),
        ("modgui/icon.html", icon().into_bytes()),
        ("modgui/style.css", include_bytes!("../modgui/style.css").to_vec()),
        ("modgui/screenshot.png", include_bytes!("../modgui/screenshot.png").to_vec()),
        ("modgui/thumbnail.png", include_bytes!("../modgui/thumbnail.png").to_vec()),
    ]
}

fn description() -> String {
    let mut text = "@prefix lv2: <http://lv2plug.in/ns/lv2core#> .\n\
                    @prefix modgui: <http://moddevices.com/ns/modgui#> .\n"
        .to_owned();
    let knobs = GROUPS.iter().flat_map(|group| group.knobs.iter().map(move |knob| (group, knob)));
    let port = |(index, (group, (parameter, label))): (usize, (&Group, &(Parameter, &str)))| {
        let (symbol, title) = (symbol(*parameter), group.title);
        format!("[ lv2:index {index} ; lv2:symbol \"{symbol}\" ; lv2:name \"{title} {label}\" ]")
    };
    let ports = knobs.enumerate().map(port).collect::<Vec<_>>().join(" ,\n\t\t");
    for Variant { uri, name, .. } in VARIANTS {
        let label = name.strip_prefix("Punctual ").unwrap_or(name);
        let _ = write!(
            text,
            "
<{uri}>
\tmodgui:gui [
\t\tmodgui:resourcesDirectory <modgui> ;
\t\tmodgui:iconTemplate <modgui/icon.html> ;
\t\tmodgui:stylesheet <modgui/style.css> ;
\t\tmodgui:screenshot <modgui/screenshot.png> ;
\t\tmodgui:thumbnail <modgui/thumbnail.png> ;
\t\tmodgui:brand \"punctual\" ;
\t\tmodgui:label \"{label}\" ;
\t\tmodgui:port {ports}
\t] .
"
        );
    }
    text
}

/// The template of the panel for Mustache: `cns` makes names of classes unique to the version of the plugin.
fn icon() -> String {
    let groups: String = GROUPS.iter().map(group).collect();
    let jacks = |side: &str| {
        format!(
            "  <div class=\"mod-pedal-{side}\">
    {{{{#effect.ports.audio.{side}}}}}
    <div class=\"mod-{side} mod-{side}-disconnected\" title=\"{{{{name}}}}\" mod-role=\"{side}-audio-port\" \
             mod-port-symbol=\"{{{{symbol}}}}\">
      <div class=\"mod-pedal-{side}-image\"></div>
    </div>
    {{{{/effect.ports.audio.{side}}}}}
  </div>
"
        )
    };
    format!(
        "<div class=\"punctual-amp{{{{{{cns}}}}}} mod-pedal\">
  <div mod-role=\"drag-handle\" class=\"mod-drag-handle\"></div>
  <div class=\"punctual-head\">
    <h1>{{{{brand}}}} <b>{{{{label}}}}</b></h1>
    <div class=\"punctual-bypass mod-footswitch\" mod-role=\"bypass\" title=\"On or bypassed\"></div>
    <div class=\"punctual-light\" mod-role=\"bypass-light\"></div>
  </div>
  <div class=\"punctual-files mod-control-group\">
    {{{{#effect.parameters}}}}{{{{#path}}}}
    <div class=\"punctual-file\" title=\"{{{{label}}}}\" mod-role=\"input-parameter\" mod-parameter-uri=\"{{{{uri}}}}\" \
         mod-widget=\"custom-select-path\">
      <span>{{{{label}}}}</span>
      <div class=\"punctual-value\" mod-role=\"input-parameter-value\" mod-parameter-uri=\"{{{{uri}}}}\">none</div>
      <div class=\"mod-enumerated-list\">
        {{{{#files}}}}<div mod-role=\"enumeration-option\" mod-parameter-value=\"{{{{fullname}}}}\">{{{{basename}}}}</div>{{{{/files}}}}
      </div>
    </div>
    {{{{/path}}}}{{{{/effect.parameters}}}}
  </div>
  <div class=\"punctual-groups mod-control-group\">
{groups}  </div>
{}{}</div>
",
        jacks("input"),
        jacks("output")
    )
}

fn group(group: &Group) -> String {
    let Group { title, switch, knobs } = group;
    let switch = switch.map_or_else(String::new, |parameter| {
        format!(
            "<div class=\"punctual-switch\" title=\"{}\" mod-role=\"input-control-port\" mod-port-symbol=\"{}\" \
             mod-widget=\"switch\"></div>",
            parameter.info().about,
            symbol(parameter)
        )
    });
    let knob = |&(parameter, label): &(Parameter, &str)| {
        let (symbol, about) = (symbol(parameter), parameter.info().about);
        format!(
            "      <div class=\"punctual-knob\" title=\"{about}\">
        <span>{label}</span>
        <div class=\"punctual-dial\" mod-role=\"input-control-port\" mod-port-symbol=\"{symbol}\" mod-widget=\"film\" \
             mod-widget-rotation=\"270\"></div>
        <div class=\"punctual-value\" mod-role=\"input-control-value\" mod-port-symbol=\"{symbol}\"></div>
      </div>
"
        )
    };
    let knobs: String = knobs.iter().map(knob).collect();
    format!("    <div class=\"punctual-group\">\n      <h2>{title}{switch}</h2>\n{knobs}    </div>\n")
}

#[cfg(test)]
mod tests {
    use amp::chain::ValueKind;

    use super::*;

    /// The values of an attribute in HTML.
    fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
        let begin = format!("{attribute}=\"");
        html.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn the_panel_refers_to_ports_that_exist() {
        let html = icon();
        let known: Vec<String> = Parameter::ALL.iter().map(|&parameter| symbol(parameter)).collect();
        let shown: Vec<&str> =
            values(&html, "mod-port-symbol").into_iter().filter(|name| *name != "{{symbol}}").collect();
        assert!(shown.len() > 20 && shown.iter().all(|name| known.iter().any(|known| known == name)), "{shown:?}");
        for Group { switch, knobs, .. } in GROUPS {
            assert!(switch.is_none_or(|switch| switch.info().kind == ValueKind::Switch));
            assert!(knobs.iter().all(|(knob, _)| matches!(knob.info().kind, ValueKind::Knob { .. })));
        }
        assert_eq!(values(&html, "mod-role").iter().filter(|role| **role == "bypass").count(), 1);
    }

    #[test]
    fn texts_need_no_escape_in_attributes() {
        let shown =
            GROUPS.iter().flat_map(|group| group.switch.into_iter().chain(group.knobs.iter().map(|knob| knob.0)));
        shown.for_each(|parameter| assert!(!parameter.info().about.contains(['"', '<', '&', '{'])));
    }

    #[test]
    fn each_class_of_the_panel_has_a_style() {
        let (html, css) = (icon(), include_str!("../modgui/style.css"));
        let classes = values(&html, "class").into_iter().flat_map(str::split_whitespace);
        for class in classes.filter(|class| class.starts_with("punctual")) {
            assert!(css.contains(&format!(".{class}")), "{class}");
        }
    }

    #[test]
    fn each_file_of_the_description_is_in_the_bundle() {
        let files = files();
        let text = description();
        let named: Vec<&str> = text.split("<modgui/").skip(1).filter_map(|rest| rest.split('>').next()).collect();
        assert_eq!(named.len(), 4 * VARIANTS.len());
        for name in named {
            assert!(files.iter().any(|(path, _)| path.strip_prefix("modgui/") == Some(name)), "{name}");
        }
    }
}
