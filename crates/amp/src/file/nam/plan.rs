//! From the description of a WaveNet in a file to its checked plan.

use serde_json::value::RawValue;

use super::{
    MAX_CHANNELS, MAX_DILATION, MAX_LAYERS, MAX_TAPS, Whole,
    activation::ActivationConfig,
    length, one_signal, size,
    wavenet::{LayerArray, OneOrEach, PostHead, Slimmable, WaveNet},
};
use crate::{
    error::LoadError,
    net::{
        wavenet::plan::{self, Array, Films, Gate, Layer, Plan},
        weights::ConvShape,
    },
    simd::Activation,
};

impl WaveNet<'_> {
    /// The checked plan of the network; `condition` is the number of outputs of the network that computes the
    /// condition.
    ///
    /// # Errors
    /// [`LoadError`], for the first size that is out of range or contradicts another one.
    pub fn plan(&self, condition: Option<usize>) -> Result<Plan, LoadError> {
        one_signal("inputs", self.in_channels)?;
        length("the number of layer arrays", &self.layers, MAX_LAYERS)?;
        let arrays = self.layers.iter().map(LayerArray::plan).collect::<Result<Vec<_>, _>>()?;
        let condition = condition.unwrap_or(1);
        for Whole(size) in self.layers.iter().map(|array| array.condition_size) {
            if usize::try_from(size) != Ok(condition) {
                return Err(LoadError::inconsistent(format!(
                    "condition_size is {size}, the condition has {condition}"
                )));
            }
        }
        let inputs = arrays.last().map_or(0, |array| array.head.outputs);
        let head = self.head.as_ref().map(|head| head.plan(inputs)).transpose()?;
        let plan = Plan { condition, arrays, head };
        plan.check()?;
        Ok(plan)
    }
}

impl PostHead {
    fn plan(&self, inputs: usize) -> Result<plan::PostHead, LoadError> {
        let channels = size("head.channels", self.channels, MAX_CHANNELS)?;
        let outputs = size("head.out_channels", self.out_channels, MAX_CHANNELS)?;
        let count = length("the number of head.kernel_sizes", &self.kernel_sizes, MAX_LAYERS)?;
        let conv = |(index, &kernel): (usize, &Whole)| {
            let inputs = if index == 0 { inputs } else { channels };
            let outputs = if index + 1 == count { outputs } else { channels };
            let kernel = size("head.kernel_sizes", kernel, MAX_TAPS)?;
            Ok(ConvShape { kernel, ..ConvShape::pointwise(inputs, outputs, true) })
        };
        let convs = self.kernel_sizes.iter().enumerate().map(conv).collect::<Result<_, LoadError>>()?;
        Ok(plan::PostHead { activation: self.activation.build()?, convs })
    }
}

impl LayerArray<'_> {
    fn plan(&self) -> Result<Array, LoadError> {
        let channels = size("channels", self.channels, MAX_CHANNELS)?;
        let bottleneck = match self.bottleneck {
            Some(bottleneck) => size("bottleneck", bottleneck, MAX_CHANNELS)?,
            None => channels,
        };
        let layers = self.layers()?;
        let head1x1 = self.head1x1()?;
        let (head, head_dilation) = self.head(head1x1.map_or(bottleneck, |(outputs, _)| outputs))?;
        Ok(Array {
            inputs: size("input_size", self.input_size, MAX_CHANNELS)?,
            channels,
            bottleneck,
            layers,
            groups_input: size("groups_input", self.groups_input, MAX_CHANNELS)?,
            groups_mixin: size("groups_input_mixin", self.groups_input_mixin, MAX_CHANNELS)?,
            layer1x1: self.layer1x1()?,
            head1x1,
            head,
            head_dilation,
            films: self.films(),
            allowed_channels: self.allowed_channels(channels)?,
        })
    }

    fn layers(&self) -> Result<Vec<Layer>, LoadError> {
        let count = length("the number of layers", &self.dilations, MAX_LAYERS)?;
        let kernels = self.kernels(count)?;
        let activations = self.activation.map(ActivationConfig::build);
        let activations = each("activation", &activations, count)?;
        let gates = self.gates(count)?;
        let layers = kernels.into_iter().zip(&self.dilations).zip(activations.into_iter().zip(gates));
        let layer = |((kernel, &dilation), (activation, gate)): ((Whole, &Whole), (&Result<_, _>, Gate))| {
            Ok(Layer {
                kernel: size("kernel_size", kernel, MAX_TAPS)?,
                dilation: size("a dilation", dilation, MAX_DILATION)?,
                activation: activation.clone()?,
                gate,
            })
        };
        layers.map(layer).collect()
    }

    /// The number of taps of each layer.
    fn kernels(&self, count: usize) -> Result<Vec<Whole>, LoadError> {
        match (self.kernel_size, &self.kernel_sizes) {
            (Some(kernel), None) => Ok(vec![kernel; count]),
            (None, Some(kernels)) if kernels.len() == count => Ok(kernels.clone()),
            (None, Some(_)) => Err(LoadError::inconsistent("kernel_sizes and dilations have different lengths")),
            (None, None) => Err(LoadError::MissingKey("kernel_size".to_owned())),
            (Some(_), Some(_)) => Err(LoadError::inconsistent("both kernel_size and kernel_sizes are present")),
        }
    }

    fn gates(&self, count: usize) -> Result<Vec<Gate>, LoadError> {
        let modes = match &self.gating_mode {
            Some(modes) => each("gating_mode", modes, count)?,
            // Older files have no gating mode; their gates are logistic functions.
            None if self.gated => return Ok(vec![Gate::Gated(Activation::Sigmoid); count]),
            None => return Ok(vec![Gate::None; count]),
        };
        if modes.iter().all(|mode| *mode == "none") {
            return Ok(vec![Gate::None; count]);
        }
        let activations: OneOrEach<Option<&RawValue>> = match self.secondary_activation {
            Some(list) if list.get().starts_with('[') => OneOrEach::Each(serde_json::from_str(list.get())?),
            all => OneOrEach::One(all),
        };
        // An error matters only in a layer with a gate.
        let activations = activations.map(|activation| gate_activation(*activation));
        let activations = each("secondary_activation", &activations, count)?;
        let gate = |(mode, activation): (&String, &Result<_, _>)| {
            Ok(match mode.as_str() {
                "none" => Gate::None,
                "gated" => Gate::Gated(activation.clone()?),
                "blended" => Gate::Blended(activation.clone()?),
                _ => return Err(LoadError::UnknownPart { what: "gating mode", name: mode.clone() }),
            })
        };
        modes.into_iter().zip(activations).map(gate).collect()
    }

    /// Groups of the 1x1 convolution to the next layer; `None` without one.
    fn layer1x1(&self) -> Result<Option<usize>, LoadError> {
        match &self.layer1x1 {
            Some(layer1x1) if !layer1x1.active => Ok(None),
            Some(layer1x1) => Ok(Some(size("layer1x1.groups", layer1x1.groups, MAX_CHANNELS)?)),
            None => Ok(Some(1)),
        }
    }

    /// Output channels and groups of the 1x1 convolution to the sum of all layers; `None` without one.
    fn head1x1(&self) -> Result<Option<(usize, usize)>, LoadError> {
        match &self.head1x1 {
            Some(head1x1) if head1x1.active => {
                let outputs = size("head1x1.out_channels", head1x1.out_channels, MAX_CHANNELS)?;
                Ok(Some((outputs, size("head1x1.groups", head1x1.groups, MAX_CHANNELS)?)))
            }
            _ => Ok(None),
        }
    }

    /// The head and its dilation.
    fn head(&self, inputs: usize) -> Result<(ConvShape, usize), LoadError> {
        let one = Whole(1);
        let (outputs, kernel, bias, dilation) = match (&self.head, self.head_size) {
            (Some(head), _) => (head.out_channels, head.kernel_size, head.bias, head.head_dilation),
            (None, Some(size)) => {
                let bias = self.head_bias.ok_or_else(|| LoadError::MissingKey("head_bias".to_owned()))?;
                (size, one, bias, one)
            }
            (None, None) => return Err(LoadError::MissingKey("head_size".to_owned())),
        };
        let shape = ConvShape {
            kernel: size("head.kernel_size", kernel, MAX_TAPS)?,
            ..ConvShape::pointwise(inputs, size("head_size", outputs, MAX_CHANNELS)?, bias)
        };
        Ok((shape, size("head_dilation", dilation, MAX_DILATION)?))
    }

    fn films(&self) -> Films {
        Films {
            conv_pre: self.conv_pre_film.0,
            conv_post: self.conv_post_film.0,
            mixin_pre: self.input_mixin_pre_film.0,
            mixin_post: self.input_mixin_post_film.0,
            activation_pre: self.activation_pre_film.0,
            activation_post: self.activation_post_film.0,
            layer1x1_post: self.layer1x1_post_film.0,
            head1x1_post: self.head1x1_post_film.0,
        }
    }

    /// Numbers of channels that the array can be reduced to; empty if it cannot be reduced.
    fn allowed_channels(&self, channels: usize) -> Result<Vec<usize>, LoadError> {
        let Some(object) = self.slimmable.filter(|value| value.get().starts_with('{')) else { return Ok(Vec::new()) };
        let slimmable: Slimmable = serde_json::from_str(object.get())?;
        match slimmable.method.as_str() {
            "" => return Ok(Vec::new()),
            "slice_channels_uniform" => {}
            method => return Err(LoadError::UnknownPart { what: "slimming method", name: method.to_owned() }),
        }
        let allowed = slimmable.kwargs.as_ref().and_then(|kwargs| kwargs.allowed_channels.as_ref());
        let Some(allowed) = allowed else { return Ok((1..=channels).collect()) };
        let allowed: Vec<usize> =
            allowed.iter().map(|&count| size("allowed_channels", count, MAX_CHANNELS)).collect::<Result<_, _>>()?;
        let is_ascending = allowed.windows(2).all(|pair| pair[0] < pair[1]);
        match is_ascending && allowed.last() == Some(&channels) {
            true => Ok(allowed),
            false => Err(LoadError::inconsistent(format!("allowed_channels do not ascend to {channels} channels"))),
        }
    }
}

/// The activation function of a gate; the logistic function by default.
fn gate_activation(config: Option<&RawValue>) -> Result<Activation, LoadError> {
    let config: Option<ActivationConfig> = config.map_or(Ok(None), |config| serde_json::from_str(config.get()))?;
    config.map_or(Ok(Activation::Sigmoid), |config| config.build())
}

/// One value for each of `count` layers.
fn each<'v, T>(name: &str, values: &'v OneOrEach<T>, count: usize) -> Result<Vec<&'v T>, LoadError> {
    match values {
        OneOrEach::One(value) => Ok(vec![value; count]),
        OneOrEach::Each(values) if values.len() == count => Ok(values.iter().collect()),
        OneOrEach::Each(_) => Err(LoadError::inconsistent(format!("{name} and dilations have different lengths"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_share_the_slopes_of_one_activation() {
        let text = r#"{"input_size": 1, "condition_size": 1, "channels": 2, "kernel_size": 1, "dilations": [1, 1],
            "activation": {"type": "PReLU", "negative_slopes": [0.1, 0.2]}, "gating_mode": "gated",
            "secondary_activation": {"type": "PReLU", "negative_slopes": [0.3, 0.4]}, "head_size": 1,
            "head_bias": false}"#;
        let layers = serde_json::from_str::<LayerArray>(text).unwrap().plan().unwrap().layers;
        let slopes = layers.iter().map(|layer| match (&layer.activation, &layer.gate) {
            (Activation::LeakyRelu(slopes), Gate::Gated(Activation::LeakyRelu(of_gate))) => {
                (slopes.as_ptr(), of_gate.as_ptr())
            }
            other => panic!("{other:?}"),
        });
        let slopes: Vec<_> = slopes.collect();
        assert!(slopes.len() == 2 && slopes[0] == slopes[1], "{slopes:?}");
    }
}
