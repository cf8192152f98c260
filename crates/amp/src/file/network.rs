//! The checked network of a file, from which nets are built.

use serde_json::value::RawValue;

use super::{Options, finite, nam, number::Whole};
use crate::{
    convert::whole,
    error::LoadError,
    net::{
        Net,
        convnet::{self, ConvNet},
        linear::{self, Linear},
        recurrent::{self, DenseWeights, Recurrent, RecurrentWeights},
        wavenet::{WaveNet, plan::Plan},
        weights::WeightReader,
    },
};

/// Maximum number of values in signals and delay lines of networks with few weights.
pub const MAX_VALUES: usize = 1 << 20;
/// Maximum number of such values per weight, for networks with many weights.
const VALUES_A_WEIGHT: usize = 8;
/// Time that recurrent layers are prewarmed, s, as in Neural Amp Modeler's core.
const PREWARM_S: f64 = 0.5;

/// The network of a file.
#[derive(Debug)]
pub enum Network {
    /// A WaveNet.
    WaveNet {
        /// Sizes of the network.
        plan: Plan,
        /// All weights, in the order of the file.
        weights: Vec<f32>,
        /// The network that computes the condition.
        condition: Option<Box<Network>>,
    },
    /// Consecutive convolutions.
    ConvNet(convnet::Plan, Vec<f32>),
    /// An impulse response.
    Linear(linear::Plan, Vec<f32>),
    /// Layers that are computed frame by frame.
    Recurrent(RecurrentConfig),
    /// Several sizes, each with its upper limit.
    Sizes(Vec<(f64, Network)>),
}

/// Layers that are computed frame by frame.
#[derive(Debug, Clone)]
pub struct RecurrentConfig {
    /// The layers, in order.
    pub layers: Vec<recurrent::Plan>,
    /// Number of inputs in addition to the signal.
    pub knobs: usize,
    /// Number of frames of silence that prewarm it; `None` for half a second.
    pub prewarm_frames: Option<usize>,
}

impl Network {
    /// Checks a file or a nested file.
    pub fn of_nam(file: &nam::File<'_>, warnings: &mut Vec<String>) -> Result<Self, LoadError> {
        match nam::is_newer(&file.version) {
            None => return Err(LoadError::UnsupportedVersion(file.version.clone())),
            Some(true) => warnings
                .push(format!("file version {} is newer than 0.7.0; all parts of the network are known", file.version)),
            Some(false) => {}
        }
        if let Some(rate) = file.sample_rate.filter(|rate| !(1_000.0..=1_000_000.0).contains(rate)) {
            return Err(LoadError::WrongType(format!("sample_rate {rate} Hz is outside 1000 to 1000000 Hz")));
        }
        finite(&file.weights)?;
        Ok(match file.architecture.as_str() {
            "WaveNet" => Self::wavenet(file, warnings)?,
            "ConvNet" => {
                let plan = serde_json::from_str::<nam::ConvNet>(file.config.get())?.plan()?;
                WeightReader::new(&file.weights, plan.weights())?;
                check_values(plan.values(), &file.weights)?;
                Self::ConvNet(plan, file.weights.clone())
            }
            "Linear" => {
                let plan = serde_json::from_str::<nam::Linear>(file.config.get())?.plan()?;
                WeightReader::new(&file.weights, plan.weights())?;
                Self::Linear(plan, file.weights.clone())
            }
            "LSTM" => Self::Recurrent(lstm(&serde_json::from_str(file.config.get())?, &file.weights)?),
            "SlimmableContainer" => Self::sizes(file, warnings)?,
            other => return Err(LoadError::UnknownArchitecture(other.to_owned())),
        })
    }

    fn wavenet(file: &nam::File<'_>, warnings: &mut Vec<String>) -> Result<Self, LoadError> {
        let config: nam::WaveNet<'_> = serde_json::from_str(file.config.get())?;
        let condition = config.condition_dsp.filter(|raw| raw.get() != "null");
        let condition = condition.map(|raw| Self::within(raw, warnings)).transpose()?;
        let plan = config.plan(condition.as_ref().map(Self::outputs))?;
        WeightReader::new(&file.weights, plan.weights())?;
        check_values(plan.values(), &file.weights)?;
        if plan.arrays.iter().any(|array| array.films.layer1x1_post.is_some()) {
            let text = "layer1x1_post_film is applied only to blended channels, as in Neural Amp Modeler's core; its \
                                    trainer applies it always";
            warnings.push(text.to_owned());
        }
        Ok(Self::WaveNet { plan, weights: file.weights.clone(), condition: condition.map(Box::new) })
    }

    fn within(raw: &RawValue, warnings: &mut Vec<String>) -> Result<Self, LoadError> {
        Self::of_nam(&serde_json::from_str(raw.get())?, warnings)
    }

    fn sizes(file: &nam::File<'_>, warnings: &mut Vec<String>) -> Result<Self, LoadError> {
        let config: nam::Container<'_> = serde_json::from_str(file.config.get())?;
        let mut sizes = Vec::new();
        for submodel in &config.submodels {
            let model: nam::File<'_> = serde_json::from_str(submodel.model.get())?;
            if let (Some(rate), Some(expected)) = (model.sample_rate, file.sample_rate)
                && rate != expected
            {
                return Err(LoadError::inconsistent(format!("a submodel of {rate} Hz in a file of {expected} Hz")));
            }
            let network = Self::of_nam(&model, warnings)?;
            if matches!(network, Self::Sizes(_)) {
                return Err(LoadError::inconsistent("submodels inside a submodel"));
            }
            sizes.push((submodel.max_value, network));
        }
        let rising = sizes.windows(2).all(|pair| pair[0].0 < pair[1].0);
        match sizes.last() {
            Some((last, _)) if rising && *last >= 1.0 => Ok(Self::Sizes(sizes)),
            _ => Err(LoadError::inconsistent("the max_value of the submodels must increase to 1 or more")),
        }
    }

    /// Number of output signals.
    pub fn outputs(&self) -> usize {
        match self {
            Self::WaveNet { plan, .. } => plan.outputs(),
            Self::ConvNet(plan, _) => plan.outputs,
            Self::Linear(..) => 1,
            Self::Recurrent(config) => {
                config.layers.iter().fold(config.knobs + 1, |values, layer| layer.outputs(values))
            }
            Self::Sizes(sizes) => sizes.iter().map(|(_, network)| network.outputs()).max().unwrap_or_default(),
        }
    }

    /// True if there are several sizes.
    pub fn is_slimmable(&self) -> bool {
        match self {
            Self::WaveNet { plan, .. } => plan.is_slimmable(),
            Self::Sizes(sizes) => sizes.len() > 1,
            Self::ConvNet(..) | Self::Linear(..) | Self::Recurrent(_) => false,
        }
    }

    /// Builds the net.
    pub fn net(&self, options: Options, sample_rate: f64) -> Result<Box<dyn Net>, LoadError> {
        let Options { slim, instructions } = options;
        let full_size = Options { slim: 1.0, instructions };
        Ok(match self {
            Self::WaveNet { plan, weights, condition } => {
                let condition = condition.as_ref().map(|network| network.net(full_size, sample_rate)).transpose()?;
                Box::new(WaveNet::new(plan, &plan.slimmed(slim)?, weights, condition, instructions)?)
            }
            Self::ConvNet(plan, weights) => Box::new(ConvNet::new(plan, weights, instructions)?),
            Self::Linear(plan, weights) => Box::new(Linear::new(plan, weights, instructions)?),
            Self::Recurrent(config) => {
                let prewarm_frames = config.prewarm_frames.unwrap_or(whole(PREWARM_S * sample_rate));
                Box::new(Recurrent::new(&config.layers, config.knobs, prewarm_frames, instructions))
            }
            Self::Sizes(sizes) => {
                let fitting = sizes.iter().find(|(most, _)| slim < *most).or(sizes.last());
                let Some((_, network)) = fitting else { return Err(LoadError::MissingKey("submodels".to_owned())) };
                // The size selected this network, so it is not reduced further.
                network.net(full_size, sample_rate)?
            }
        })
    }
}

/// The signal and two knobs.
const MAX_INPUTS: i64 = 3;

/// Checks the number of inputs of a recurrent network.
///
/// # Errors
/// [`LoadError::BadDimension`], [`LoadError::TooManyInputs`].
pub fn inputs(name: &str, count: Whole) -> Result<usize, LoadError> {
    match count.0 {
        ..=MAX_INPUTS => nam::size(name, count, nam::MAX_CHANNELS),
        count => Err(LoadError::TooManyInputs(count)),
    }
}

/// # Errors
/// [`LoadError::TooLarge`] if signals and delay lines need more values than the number of weights justifies.
fn check_values(values: usize, weights: &[f32]) -> Result<(), LoadError> {
    match values > MAX_VALUES.max(weights.len().saturating_mul(VALUES_A_WEIGHT)) {
        true => Err(LoadError::TooLarge(format!("it needs {values} values of history for {} weights", weights.len()))),
        false => Ok(()),
    }
}

/// Recurrent layers in the order of Neural Amp Modeler: for each layer the weights of inputs and units, the biases and
/// the initial state; then the weights and biases of the output.
fn lstm(config: &nam::Lstm, weights: &[f32]) -> Result<RecurrentConfig, LoadError> {
    nam::one_signal("inputs", config.in_channels)?;
    nam::one_signal("inputs", config.input_size)?;
    let units = nam::size("hidden_size", config.hidden_size, nam::MAX_CHANNELS)?;
    let count = nam::size("num_layers", config.num_layers, nam::MAX_LAYERS)?;
    let outputs = nam::size("out_channels", config.out_channels, nam::MAX_CHANNELS)?;
    let of_layer = |inputs: usize| 4 * units * (inputs + units + 1) + 2 * units;
    let needed = of_layer(1) + (count - 1) * of_layer(units) + outputs * (units + 1);
    let mut weights = WeightReader::new(weights, needed as u64)?;
    let mut layers = Vec::new();
    for layer in 0..count {
        let inputs = if layer == 0 { 1 } else { units };
        let columns = inputs + units;
        let (matrix, biases) = (weights.take(4 * units * columns), weights.take(4 * units));
        let initial_state = [weights.take(units).to_vec(), weights.take(units).to_vec()];
        let weight = |gate: usize, unit: usize, column: usize| matrix[(gate * units + unit) * columns + column];
        layers.push(recurrent::Plan::Lstm(RecurrentWeights::new(
            inputs,
            units,
            weight,
            |gate, unit| biases[gate * units + unit],
            initial_state,
        )));
    }
    let (matrix, biases) = (weights.take(outputs * units), weights.take(outputs));
    let head = DenseWeights::new(outputs, units, |row, column| matrix[row * units + column], |row| biases[row]);
    layers.push(recurrent::Plan::Dense(head));
    Ok(RecurrentConfig { layers, knobs: 0, prewarm_frames: None })
}
