//! What a file says of one array of layers.

use serde_json::value::RawValue;

use super::unfit;
use crate::{
    file::{
        LoadError,
        nam::{self, MAX_CHANNELS, MAX_DILATION, MAX_LAYERS, MAX_TAPS, OneOrEach, size},
    },
    net::weights::ConvShape,
    simd::Activation,
};

/// An array of layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub inputs: usize,
    pub channels: usize,
    pub bottleneck: usize,
    pub layers: Vec<Layer>,
    pub groups_input: usize,
    pub groups_mixin: usize,
    /// Groups, where it is there.
    pub layer1x1: Option<usize>,
    /// Channels out and groups, where it is there.
    pub head1x1: Option<(usize, usize)>,
    pub head: ConvShape,
    pub head_dilation: usize,
    pub films: Films,
    /// Numbers of channels that it can be cut down to, the fewest first; none where it cannot.
    pub allowed: Vec<usize>,
}

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub kernel: usize,
    pub dilation: usize,
    pub activation: Activation,
    pub gate: Gate,
}

impl Layer {
    /// Frames of its input's past that it sees.
    pub fn history(&self) -> usize {
        self.dilation * (self.kernel - 1)
    }
}

/// What the second half of a layer's channels does to the first.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// There is no second half.
    None,
    /// It is multiplied with it.
    Gated(Activation),
    /// It tells how much of the activation is taken, and how much of what went into it.
    Blended(Activation),
}

/// Modulations by the condition, in the order of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Films {
    pub conv_pre: nam::Film,
    pub conv_post: nam::Film,
    pub mixin_pre: nam::Film,
    pub mixin_post: nam::Film,
    pub activation_pre: nam::Film,
    pub activation_post: nam::Film,
    pub layer1x1_post: nam::Film,
    pub head1x1_post: nam::Film,
}

impl Array {
    /// Checks what a file says.
    ///
    /// # Errors
    /// [`LoadError`], naming what is wrong.
    pub fn new(config: &nam::LayerArray<'_>) -> Result<Self, LoadError> {
        let count = size("the number of layers", config.dilations.len() as i64, MAX_LAYERS)?;
        let channels = size("channels", config.channels.0, MAX_CHANNELS)?;
        let bottleneck = config.bottleneck.map(|value| size("bottleneck", value.0, MAX_CHANNELS)).transpose()?;
        let kernels = match (config.kernel_size, &config.kernel_sizes) {
            (Some(kernel), None) => vec![kernel; count],
            (None, Some(kernels)) => kernels.clone(),
            (None, None) => return Err(LoadError::MissingKey("kernel_size".to_owned())),
            (Some(_), Some(_)) => return Err(unfit("kernel_size and kernel_sizes, of which there may be one,")),
        };
        let activations = each("activation", &config.activation, count)?;
        let gates = config.gates(count)?;
        if kernels.len() != count {
            return Err(unfit("kernel_sizes and dilations"));
        }
        let layers = kernels.iter().zip(&config.dilations).zip(activations.iter().zip(gates));
        let layers = layers.map(|((kernel, dilation), (activation, gate))| {
            Ok(Layer {
                kernel: size("kernel_size", kernel.0, MAX_TAPS)?,
                dilation: size("a dilation", dilation.0, MAX_DILATION)?,
                activation: activation.build()?,
                gate,
            })
        });
        let head1x1 = config.head1x1.as_ref().filter(|head1x1| head1x1.active).map(|head1x1| {
            let outputs = size("head1x1.out_channels", head1x1.out_channels.0, MAX_CHANNELS)?;
            Ok::<_, LoadError>((outputs, size("head1x1.groups", head1x1.groups.0, MAX_CHANNELS)?))
        });
        let layer1x1 = match &config.layer1x1 {
            Some(layer1x1) if !layer1x1.active => None,
            Some(layer1x1) => Some(size("layer1x1.groups", layer1x1.groups.0, MAX_CHANNELS)?),
            None => Some(1),
        };
        let bottleneck = bottleneck.unwrap_or(channels);
        let head1x1 = head1x1.transpose()?;
        let (head, head_dilation) = config.head(head1x1.map_or(bottleneck, |(outputs, _)| outputs))?;
        Ok(Self {
            inputs: size("input_size", config.input_size.0, MAX_CHANNELS)?,
            channels,
            bottleneck,
            layers: layers.collect::<Result<_, LoadError>>()?,
            groups_input: size("groups_input", config.groups_input.0, MAX_CHANNELS)?,
            groups_mixin: size("groups_input_mixin", config.groups_input_mixin.0, MAX_CHANNELS)?,
            layer1x1,
            head1x1,
            head,
            head_dilation,
            films: Films {
                conv_pre: config.conv_pre_film,
                conv_post: config.conv_post_film,
                mixin_pre: config.input_mixin_pre_film,
                mixin_post: config.input_mixin_post_film,
                activation_pre: config.activation_pre_film,
                activation_post: config.activation_post_film,
                layer1x1_post: config.layer1x1_post_film,
                head1x1_post: config.head1x1_post_film,
            },
            allowed: config.allowed(channels)?,
        })
    }

    /// Channels of the sum of all layers.
    pub fn sum(&self) -> usize {
        self.head1x1.map_or(self.bottleneck, |(outputs, _)| outputs)
    }
}

impl nam::LayerArray<'_> {
    fn gates(&self, count: usize) -> Result<Vec<Gate>, LoadError> {
        let modes = match &self.gating_mode {
            Some(modes) => each("gating_mode", modes, count)?,
            // As it was said before there were kinds of gates: what weighs was the logistic function.
            None if self.gated => return Ok(vec![Gate::Gated(Activation::Sigmoid); count]),
            None => return Ok(vec![Gate::None; count]),
        };
        if modes.iter().all(|mode| mode == "none") {
            return Ok(vec![Gate::None; count]);
        }
        let seconds = match self.secondary_activation {
            Some(list) if list.get().starts_with('[') => {
                each("secondary_activation", &OneOrEach::Each(serde_json::from_str(list.get())?), count)?
            }
            all => vec![all; count],
        };
        let gate = |(mode, second): (&String, &Option<&RawValue>)| {
            Ok(match mode.as_str() {
                "none" => Gate::None,
                "gated" => Gate::Gated(weighing(*second)?),
                "blended" => Gate::Blended(weighing(*second)?),
                _ => return Err(LoadError::UnknownPart { what: "the gating mode", name: mode.clone() }),
            })
        };
        modes.iter().zip(&seconds).map(gate).collect()
    }

    fn head(&self, inputs: usize) -> Result<(ConvShape, usize), LoadError> {
        let one = nam::Whole(1);
        let (outputs, kernel, bias, dilation) = match (&self.head, self.head_size) {
            (Some(head), _) => (head.out_channels, head.kernel_size, head.bias, head.head_dilation),
            (None, Some(size)) => {
                let bias = self.head_bias.ok_or_else(|| LoadError::MissingKey("head_bias".to_owned()))?;
                (size, one, bias, one)
            }
            (None, None) => return Err(LoadError::MissingKey("head_size".to_owned())),
        };
        let shape = ConvShape {
            kernel: size("head.kernel_size", kernel.0, MAX_TAPS)?,
            ..ConvShape::pointwise(inputs, size("head_size", outputs.0, MAX_CHANNELS)?, bias)
        };
        Ok((shape, size("head_dilation", dilation.0, MAX_DILATION)?))
    }

    fn allowed(&self, channels: usize) -> Result<Vec<usize>, LoadError> {
        let said = self.slimmable.filter(|said| said.get().starts_with('{'));
        let Some(said) = said else { return Ok(Vec::new()) };
        let slimmable: nam::Slimmable = serde_json::from_str(said.get())?;
        match slimmable.method.as_str() {
            "" => return Ok(Vec::new()),
            "slice_channels_uniform" => {}
            method => return Err(LoadError::UnknownPart { what: "the way to slim", name: method.to_owned() }),
        }
        let allowed = slimmable.kwargs.as_ref().and_then(|kwargs| kwargs.allowed_channels.as_ref());
        let Some(allowed) = allowed else { return Ok((1..=channels).collect()) };
        let allowed: Vec<usize> =
            allowed.iter().map(|count| size("allowed_channels", count.0, MAX_CHANNELS)).collect::<Result<_, _>>()?;
        let rising = allowed.windows(2).all(|pair| pair[0] < pair[1]);
        match rising && allowed.last() == Some(&channels) {
            true => Ok(allowed),
            false => Err(unfit("allowed_channels and the channels")),
        }
    }
}

/// The function of the half that weighs: the logistic function unless the file says otherwise.
fn weighing(said: Option<&RawValue>) -> Result<Activation, LoadError> {
    let said: Option<nam::ActivationConfig> = said.map_or(Ok(None), |said| serde_json::from_str(said.get()))?;
    said.map_or(Ok(Activation::Sigmoid), |said| said.build())
}

/// One value for each of `count` layers.
fn each<T: Clone>(name: &str, values: &OneOrEach<T>, count: usize) -> Result<Vec<T>, LoadError> {
    match values {
        OneOrEach::One(value) => Ok(vec![value.clone(); count]),
        OneOrEach::Each(values) if values.len() == count => Ok(values.clone()),
        OneOrEach::Each(_) => Err(unfit(&format!("{name} and dilations"))),
    }
}
