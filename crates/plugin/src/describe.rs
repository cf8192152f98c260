//! The description of the plugins in Turtle, which hosts read without loading the library.

use std::{
    fmt::Write,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use amp::{Parameter, Settings, chain::ValueKind};

use crate::{
    modgui,
    ports::{FileProperty, Port, VARIANTS, Variant},
};

/// Name of the library in the bundle.
pub const LIBRARY: &str = "punctual_plugin.so";
/// Name of the file with the description.
pub const DESCRIPTION: &str = "punctual.ttl";

const PREFIXES: &str = "\
@prefix atom: <http://lv2plug.in/ns/ext/atom#> .
@prefix doap: <http://usefulinc.com/ns/doap#> .
@prefix lv2: <http://lv2plug.in/ns/lv2core#> .
@prefix mod: <http://moddevices.com/ns/mod#> .
@prefix patch: <http://lv2plug.in/ns/ext/patch#> .
@prefix pprops: <http://lv2plug.in/ns/ext/port-props#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix rsz: <http://lv2plug.in/ns/ext/resize-port#> .
@prefix state: <http://lv2plug.in/ns/ext/state#> .
@prefix units: <http://lv2plug.in/ns/extensions/units#> .
@prefix urid: <http://lv2plug.in/ns/ext/urid#> .
@prefix work: <http://lv2plug.in/ns/ext/worker#> .

";

/// The list of the plugins, `manifest.ttl`.
#[must_use]
pub fn manifest() -> String {
    let mut text = "@prefix lv2: <http://lv2plug.in/ns/lv2core#> .\n\
                    @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        .to_owned();
    for Variant { uri, .. } in VARIANTS {
        let _ = write!(
            text,
            "\n<{uri}>\n\ta lv2:Plugin ;\n\tlv2:binary <{LIBRARY}> ;\n\trdfs:seeAlso <{DESCRIPTION}> , <{}> .\n",
            modgui::DESCRIPTION
        );
    }
    text
}

/// A preset of `punctual amp` as a preset of hosts: the values of all ports, and the path of the file for its models and
/// cabinets.
#[derive(Debug, Clone)]
pub struct HostPreset {
    /// Its name, shown by the host.
    pub name: String,
    /// The whole path of its file.
    pub path: PathBuf,
    /// The values of its parameters.
    pub settings: Settings,
}

impl HostPreset {
    /// The name of its file in the bundle, for the `number`-th preset.
    #[must_use]
    pub fn file(number: usize) -> String {
        format!("preset-{number}.ttl")
    }

    /// The lines about it in the list of the bundle.
    #[must_use]
    pub fn in_manifest(&self, number: usize) -> String {
        let file = Self::file(number);
        let of = |Variant { uri, .. }: Variant| {
            format!(
                "\n<{file}#{}>\n\ta {PRESET} ;\n\tlv2:appliesTo <{uri}> ;\n\trdfs:seeAlso <{file}> .\n",
                fragment(uri)
            )
        };
        VARIANTS.map(of).concat()
    }

    /// Its description.
    #[must_use]
    pub fn description(&self, number: usize) -> String {
        let mut text = PREFIXES.to_owned();
        let file = Self::file(number);
        for Variant { uri, .. } in VARIANTS {
            let ports = Parameter::ALL.iter().map(|&parameter| {
                let (symbol, value) = (symbol(parameter), self.settings.get(parameter));
                format!("[ lv2:symbol \"{symbol}\" ; <http://lv2plug.in/ns/ext/presets#value> {value:?} ]")
            });
            let ports = ports.collect::<Vec<_>>().join(" ,\n\t\t");
            let (fragment, label) = (fragment(uri), quoted(&self.name));
            let (property, path) = (FileProperty::Preset.uri(), file_uri(&self.path));
            let _ = write!(
                text,
                "<{file}#{fragment}>\n\ta {PRESET} ;\n\tlv2:appliesTo <{uri}> ;\n\trdfs:label {label} ;\n\
                 \tlv2:port {ports} ;\n\tstate:state [ <{property}> <{path}> ] .\n\n"
            );
        }
        text
    }
}

const PRESET: &str = "<http://lv2plug.in/ns/ext/presets#Preset>";

/// The last part of the URI of a plugin.
fn fragment(uri: &str) -> &str {
    uri.rsplit(':').next().unwrap_or(uri)
}

/// The URI of a file: other characters than those of plain names are encoded.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'_' | b'-' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

/// The description of all plugins, `punctual.ttl`. `version` is that of the project, such as `0.2.0`.
#[must_use]
pub fn description(version: &str) -> String {
    let mut text = PREFIXES.to_owned();
    for file in FileProperty::ALL {
        let (uri, name) = (file.uri(), quoted(file.name()));
        let kinds = file.kinds_of_mod().map(|kinds| format!("\tmod:fileTypes \"{kinds}\" ;\n")).unwrap_or_default();
        let _ =
            write!(text, "<{uri}>\n\ta lv2:Parameter ;\n\trdfs:label {name} ;\n{kinds}\trdfs:range atom:Path .\n\n");
    }
    for variant in VARIANTS {
        plugin(&mut text, &variant, version);
    }
    text
}

fn plugin(text: &mut String, variant: &Variant, version: &str) {
    let Variant { uri, name, .. } = variant;
    let mut versions = version.split('.').map(|number| number.parse().unwrap_or(0));
    let [major, minor, micro]: [u32; 3] = std::array::from_fn(|_| versions.next().unwrap_or(0));
    let files = FileProperty::ALL.map(|file| format!("<{}>", file.uri())).join(" , ");
    let ports: Vec<String> = variant.ports().enumerate().map(|(index, port)| in_turtle(index, port)).collect();
    // An odd micro version means a development version in LV2.
    let (minor, micro) = (100 * major + minor, 2 * micro);
    let _ = write!(
        text,
        "<{uri}>
\ta lv2:Plugin , lv2:SimulatorPlugin , doap:Project ;
\tdoap:name {name} ;
\tdoap:license <http://spdx.org/licenses/MIT> ;
\tdoap:maintainer [ doap:name \"the punctual developers\" ] ;
\trdfs:comment \"A neural guitar amplifier and cabinet.\" ;
\tlv2:minorVersion {minor} ;
\tlv2:microVersion {micro} ;
\tlv2:optionalFeature lv2:hardRTCapable , urid:map , work:schedule , state:mapPath , state:freePath ;
\tlv2:extensionData work:interface , state:interface ;
\tpatch:writable {files} ;
\tlv2:port {} .

",
        ports.join(" , "),
        name = quoted(name)
    );
}

fn in_turtle(index: usize, port: Port) -> String {
    let head = |kind: &str, symbol: &str, name: &str| {
        format!(
            "[\n\t\ta {kind} ;\n\t\tlv2:index {index} ;\n\t\tlv2:symbol \"{symbol}\" ;\n\t\tlv2:name {} ;\n",
            quoted(name)
        )
    };
    let rest = match port {
        Port::Control => {
            head("lv2:InputPort , atom:AtomPort", "control", "Control")
                + "\t\tatom:bufferType atom:Sequence ;\n\t\tatom:supports patch:Message ;\n\t\tlv2:designation lv2:control ;\n\
                   \t\tlv2:portProperty lv2:connectionOptional ;\n"
        }
        Port::Notify => {
            head("lv2:OutputPort , atom:AtomPort", "notify", "Notify")
                + "\t\tatom:bufferType atom:Sequence ;\n\t\tatom:supports patch:Message ;\n\
                   \t\tlv2:designation lv2:control ;\n\t\trsz:minimumSize 16384 ;\n\
                   \t\tlv2:portProperty lv2:connectionOptional ;\n"
        }
        Port::Input => head("lv2:InputPort , lv2:AudioPort", "in", "In"),
        Port::Output(0) => head("lv2:OutputPort , lv2:AudioPort", "out", "Out"),
        Port::Output(_) => head("lv2:OutputPort , lv2:AudioPort", "out_right", "Out right"),
        Port::Enabled => {
            head("lv2:InputPort , lv2:ControlPort", "enabled", "Enabled")
                + "\t\tlv2:designation lv2:enabled ;\n\t\tlv2:portProperty lv2:integer , lv2:toggled ;\n\
                   \t\tlv2:default 1 ;\n\t\tlv2:minimum 0 ;\n\t\tlv2:maximum 1 ;\n"
        }
        Port::Latency => {
            head("lv2:OutputPort , lv2:ControlPort", "latency", "Latency")
                + "\t\tlv2:designation lv2:latency ;\n\t\tlv2:portProperty lv2:reportsLatency , lv2:integer ;\n\
                   \t\tlv2:minimum 0 ;\n\t\tlv2:maximum 192000 ;\n\t\tunits:unit units:frame ;\n"
        }
        Port::Parameter(parameter) => {
            head("lv2:InputPort , lv2:ControlPort", &symbol(parameter), &name(parameter)) + &of_parameter(parameter)
        }
    };
    format!("{rest}\t]")
}

/// The symbol of a parameter: `tone_bass_db`.
#[must_use]
pub fn symbol(parameter: Parameter) -> String {
    parameter.info().name.replace('.', "_")
}

/// The name of a parameter for people: `Tone bass`.
#[must_use]
pub fn name(parameter: Parameter) -> String {
    let name = parameter.info().name.replace(['.', '_'], " ");
    let without_unit = [" db", " ms", " dbu"].iter().find_map(|unit| name.strip_suffix(unit)).unwrap_or(&name);
    let mut letters = without_unit.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn of_parameter(parameter: Parameter) -> String {
    let info = parameter.info();
    let (default, about) = (info.default, quoted(info.about));
    let range = |least: f32, most: f32| {
        format!(
            "\t\tlv2:default {default:?} ;\n\t\tlv2:minimum {least:?} ;\n\t\tlv2:maximum {most:?} ;\n\t\trdfs:comment {about} ;\n"
        )
    };
    match info.kind {
        ValueKind::Switch => range(0.0, 1.0) + "\t\tlv2:portProperty lv2:toggled , lv2:integer ;\n",
        ValueKind::Choice(words) => {
            let points: Vec<String> = (0..)
                .zip(words)
                .map(|(value, word)| format!("[ rdfs:label {} ; rdf:value {value} ]", quoted(word)))
                .collect();
            let points = points.join(" , ").replace("rdf:value", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#value>");
            range(0.0, words.len() as f32 - 1.0)
                + &format!("\t\tlv2:portProperty lv2:enumeration , lv2:integer ;\n\t\tlv2:scalePoint {points} ;\n")
        }
        ValueKind::Knob { least, most, unit } => {
            let unit = match unit {
                "dB" => "\t\tunits:unit units:db ;\n".to_owned(),
                "ms" => "\t\tunits:unit units:ms ;\n".to_owned(),
                "" => String::new(),
                unit => format!(
                    "\t\tunits:unit [ a units:Unit ; units:symbol \"{unit}\" ; units:render \"%.1f {unit}\" ] ;\n"
                ),
            };
            range(least, most) + &unit
        }
    }
}

/// A text in Turtle.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn symbols_are_unique_and_valid() {
        let mut symbols = BTreeSet::new();
        for &parameter in Parameter::ALL {
            let symbol = symbol(parameter);
            assert!(symbol.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{symbol}");
            assert!(symbols.insert(symbol));
        }
        assert_eq!(name(Parameter::Bass), "Tone bass");
        assert_eq!(name(Parameter::InputFullScale), "Input full scale");
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(file_uri(Path::new("/tones/my lead <1>.toml")), "file:///tones/my%20lead%20%3C1%3E.toml");
    }

    #[test]
    fn a_preset_has_the_values_of_all_ports() {
        let mut settings = Settings::default();
        settings.set(Parameter::Bass, 3.5).unwrap();
        let preset = HostPreset { name: "my \"lead\"".to_owned(), path: "/tones/lead.toml".into(), settings };
        let text = preset.description(2);
        assert!(
            text.contains("lv2:symbol \"tone_bass_db\" ; <http://lv2plug.in/ns/ext/presets#value> 3.5 ]"),
            "{text}"
        );
        assert!(
            text.contains("<urn:punctual:amp:preset> <file:///tones/lead.toml>") && text.contains(r#""my \"lead\"""#)
        );
        assert_eq!(text.matches("lv2:symbol").count(), 2 * Parameter::ALL.len());
        assert!(preset.in_manifest(2).contains("<preset-2.ttl#amp-stereo>"));
    }

    #[test]
    fn every_port_is_described() {
        let text = description("1.2.3");
        for variant in VARIANTS {
            assert!(text.contains(&format!("<{}>\n\ta lv2:Plugin", variant.uri)));
            let last = variant.ports().count() - 1;
            assert!(text.contains(&format!("lv2:index {last} ;")));
            assert_eq!(variant.port(u32::try_from(last).unwrap() + 1), None);
        }
        assert!(text.contains("lv2:minorVersion 102 ;\n\tlv2:microVersion 6 ;"));
        assert!(manifest().contains(LIBRARY));
    }
}
