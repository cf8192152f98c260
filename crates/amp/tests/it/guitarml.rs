//! GuitarML's files, compared with a simple computation in `f64` from the definitions of PyTorch's modules.

use amp::{InstructionSet, ModelFile, file::Options};
use serde_json::{Value, json};

use crate::{play, reference::Numbers};

type Rows = Vec<Vec<f32>>;

/// A layer of `torch.nn.LSTM` (gates input, forget, candidate, output) or `torch.nn.GRU` (reset, update, candidate).
struct Layer {
    weight_ih: Rows,
    weight_hh: Rows,
    bias_ih: Vec<f32>,
    bias_hh: Vec<f32>,
}

/// Sizes and options of a file.
#[derive(Clone, Copy)]
pub struct Spec {
    pub unit: &'static str,
    pub inputs: usize,
    pub units: usize,
    pub layers: usize,
    /// True if the file has biases.
    pub has_biases: bool,
    pub skip: u8,
}

pub const LSTM: Spec = Spec { unit: "LSTM", inputs: 1, units: 9, layers: 1, has_biases: true, skip: 1 };
pub const GRU: Spec = Spec { unit: "GRU", ..LSTM };

/// The weights of a model.
pub struct Weights {
    layers: Vec<Layer>,
    head: Vec<f32>,
    head_bias: f32,
}

impl Spec {
    pub fn weights(&self) -> Weights {
        let mut numbers = Numbers(self.units as u64);
        let mut values =
            |count: usize, scale: f32| -> Vec<f32> { (0..count).map(|_| numbers.signed() * scale).collect() };
        let rows = self.units * if self.unit == "LSTM" { 4 } else { 3 };
        let bias = if self.has_biases { 0.5 } else { 0.0 };
        let layers = (0..self.layers).map(|layer| {
            let inputs = if layer == 0 { self.inputs } else { self.units };
            Layer {
                weight_ih: (0..rows).map(|_| values(inputs, 0.9)).collect(),
                weight_hh: (0..rows).map(|_| values(self.units, 0.4)).collect(),
                bias_ih: values(rows, bias),
                bias_hh: values(rows, bias),
            }
        });
        let layers = layers.collect();
        Weights { layers, head: values(self.units, 0.5), head_bias: values(1, bias)[0] }
    }

    /// The file of these weights.
    pub fn file(&self, weights: &Weights) -> Value {
        let mut state = json!({ "lin.weight": [weights.head] });
        if self.has_biases {
            state["lin.bias"] = json!([weights.head_bias]);
        }
        for (index, layer) in weights.layers.iter().enumerate() {
            state[format!("rec.weight_ih_l{index}")] = json!(layer.weight_ih);
            state[format!("rec.weight_hh_l{index}")] = json!(layer.weight_hh);
            if self.has_biases {
                state[format!("rec.bias_ih_l{index}")] = json!(layer.bias_ih);
                state[format!("rec.bias_hh_l{index}")] = json!(layer.bias_hh);
            }
        }
        json!({
            "model_data": {
                "model": "SimpleRNN", "input_size": self.inputs, "skip": self.skip, "output_size": 1,
                "unit_type": self.unit, "num_layers": self.layers, "hidden_size": self.units, "bias_fl": self.has_biases,
            },
            "state_dict": state,
        })
    }

    /// The output for the signal with knobs at `knobs`, from the definitions of PyTorch.
    fn expected(&self, weights: &Weights, input: &[f32], knobs: &[f32]) -> Vec<f64> {
        let of_frame = |&x: &f32| [x].iter().chain(knobs).map(|&x| f64::from(x)).collect();
        let mut signal: Vec<Vec<f64>> = input.iter().map(of_frame).collect();
        for layer in &weights.layers {
            signal = if self.unit == "LSTM" { layer.lstm(&signal) } else { layer.gru(&signal) };
        }
        let sum = |h: &Vec<f64>| dot(&weights.head, h) + f64::from(weights.head_bias);
        signal.iter().zip(input).map(|(h, &x)| sum(h) + f64::from(self.skip) * f64::from(x)).collect()
    }
}

fn dot(weights: &[f32], values: &[f64]) -> f64 {
    weights.iter().zip(values).map(|(&weight, value)| f64::from(weight) * value).sum()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Layer {
    /// The sums of the inputs and of the units, for row `gate * units + unit`.
    fn sums(&self, gate: usize, unit: usize, x: &[f64], h: &[f64]) -> (f64, f64) {
        let row = gate * h.len() + unit;
        let of_inputs = dot(&self.weight_ih[row], x) + f64::from(self.bias_ih[row]);
        (of_inputs, dot(&self.weight_hh[row], h) + f64::from(self.bias_hh[row]))
    }

    fn lstm(&self, signal: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let units = self.weight_hh[0].len();
        let (mut h, mut c) = (vec![0.0; units], vec![0.0; units]);
        let mut outputs = Vec::new();
        for x in signal {
            let gate = |gate: usize, unit: usize| {
                let (of_inputs, of_units) = self.sums(gate, unit, x, &h);
                of_inputs + of_units
            };
            let cell = |unit: usize| {
                let (i, f, g) = (sigmoid(gate(0, unit)), sigmoid(gate(1, unit)), gate(2, unit).tanh());
                f * c[unit] + i * g
            };
            let next: Vec<f64> = (0..units).map(cell).collect();
            let hidden = (0..units).map(|unit| sigmoid(gate(3, unit)) * next[unit].tanh()).collect();
            (h, c) = (hidden, next);
            outputs.push(h.clone());
        }
        outputs
    }

    fn gru(&self, signal: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let units = self.weight_hh[0].len();
        let mut h = vec![0.0; units];
        let mut outputs = Vec::new();
        for x in signal {
            let unit = |unit: usize| {
                let [r, z] = [0, 1].map(|gate| {
                    let (of_inputs, of_units) = self.sums(gate, unit, x, &h);
                    sigmoid(of_inputs + of_units)
                });
                let (of_inputs, of_units) = self.sums(2, unit, x, &h);
                (1.0 - z) * (of_inputs + r * of_units).tanh() + z * h[unit]
            };
            h = (0..units).map(unit).collect();
            outputs.push(h.clone());
        }
        outputs
    }
}

#[test]
fn recurrent_models_match_their_definition() {
    let mut numbers = Numbers(2);
    let input: Vec<f32> = (0..600).map(|frame| (frame as f32 * 0.09).sin() * 0.6 + numbers.signed() * 0.3).collect();
    let mut specs = Vec::new();
    for units in [1, 8, 20, 32, 40, 64] {
        specs.extend([Spec { units, ..LSTM }, Spec { units, ..GRU }]);
    }
    for spec in [LSTM, GRU] {
        specs.extend([
            Spec { inputs: 2, ..spec },
            Spec { inputs: 3, units: 40, ..spec },
            Spec { layers: 3, ..spec },
            Spec { has_biases: false, ..spec },
            Spec { has_biases: false, layers: 2, inputs: 2, skip: 0, ..spec },
            Spec { skip: 0, ..spec },
        ]);
    }
    for spec in specs {
        let Spec { unit, inputs, units, layers, .. } = spec;
        let weights = spec.weights();
        let file = ModelFile::read(spec.file(&weights).to_string().as_bytes()).unwrap();
        let knobs = &[0.35, 0.8][..inputs - 1];
        let expected = spec.expected(&weights, &input, knobs);
        let peak = expected.iter().fold(0.0, |peak: f64, x| peak.max(x.abs()));
        for instructions in InstructionSet::all() {
            let mut model = file.model(Options { instructions, ..Options::default() }).unwrap();
            knobs.iter().enumerate().for_each(|(knob, &value)| model.turn(knob, value));
            model.reset(false);
            let played = play(&mut model, &input, &[64, 37]);
            let errors = played.iter().zip(&expected).map(|(a, b)| (f64::from(*a) - b).abs());
            let worst = errors.fold(0.0, f64::max);
            let name = format!("{layers} x {unit} of {units} units with {}", instructions.name());
            assert!(peak > 0.1 && worst < 3e-6 * peak.max(1.0), "{name}: {worst:e} of {peak}");
        }
    }
}
