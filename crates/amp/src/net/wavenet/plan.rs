//! What a file says of a WaveNet, checked: sizes that fit together and with the number of weights.

use crate::{
    file::{
        LoadError,
        nam::{self, MOST_CHANNELS, MOST_DILATION, MOST_LAYERS, MOST_TAPS, OneOrEach, size},
    },
    net::dense::Shape,
    simd::Activation,
};

/// A WaveNet.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Signals of the condition.
    pub condition: usize,
    /// One after the other.
    pub arrays: Vec<Array>,
    /// After all arrays.
    pub head: Option<PostHead>,
}

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
    pub head: Shape,
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

/// Convolutions after all arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct PostHead {
    pub activation: Activation,
    pub convs: Vec<Shape>,
}

impl Plan {
    /// Checks what a file says; `condition` is the number of signals of the network that makes the condition.
    ///
    /// # Errors
    /// [`LoadError`], naming what is wrong.
    pub fn new(config: &nam::WaveNet<'_>, condition: Option<usize>) -> Result<Self, LoadError> {
        if config.in_channels != 1 {
            return Err(LoadError::TooLarge(format!("the network has {} inputs, not one", config.in_channels)));
        }
        size("the number of layer arrays", config.layers.len() as i64, MOST_LAYERS)?;
        let arrays = config.layers.iter().map(Array::new).collect::<Result<Vec<_>, _>>()?;
        let condition = condition.unwrap_or(1);
        for (array, asked) in arrays.iter().zip(&config.layers) {
            fits("the condition and its layers", asked.condition_size, condition)?;
            array.check(condition)?;
        }
        fits("the input and the first layers", arrays[0].inputs as i64, 1)?;
        for pair in arrays.windows(2) {
            fits("one array's channels and the next one's input", pair[1].inputs as i64, pair[0].channels)?;
            fits("one array's head and the next one's sum", pair[1].sum() as i64, pair[0].head.outputs)?;
        }
        let last = arrays.last().map_or(0, |array| array.head.outputs);
        let head = config.head.as_ref().map(|head| PostHead::new(head, last)).transpose()?;
        Ok(Self { condition, arrays, head })
    }

    /// Number of weights in the file.
    pub fn weights(&self) -> u64 {
        let of_arrays: u64 = self.arrays.iter().map(|array| array.weights(self.condition)).fold(0, u64::saturating_add);
        let of_head: u64 = self.head.iter().flat_map(|head| &head.convs).map(Shape::weights).sum();
        // The last one is what everything is scaled by.
        of_arrays.saturating_add(of_head).saturating_add(1)
    }

    /// Frames that one output frame depends on, its own among them.
    pub fn receptive_field(&self) -> usize {
        let of_array = |array: &Array| {
            let of_layers: usize = array.layers.iter().map(|layer| layer.dilation * (layer.kernel - 1)).sum();
            of_layers + array.head_dilation * (array.head.kernel - 1)
        };
        let of_head: usize = self.head.iter().flat_map(|head| &head.convs).map(|conv| conv.kernel - 1).sum();
        1 + self.arrays.iter().map(of_array).sum::<usize>() + of_head
    }

    /// Values of past that have to be kept.
    pub fn past(&self) -> usize {
        let of_array = |array: &Array| {
            let of_layer =
                |layer: &Layer| layer.dilation.saturating_mul(layer.kernel - 1).saturating_mul(array.channels);
            let of_layers = array.layers.iter().map(of_layer).fold(0, usize::saturating_add);
            of_layers
                .saturating_add(array.head_dilation.saturating_mul(array.head.kernel - 1).saturating_mul(array.sum()))
        };
        self.arrays.iter().map(of_array).fold(0, usize::saturating_add)
    }

    /// The plan cut down to a size of 0 to 1, as Neural Amp Modeler's core does it. The weights stay those of the whole.
    pub fn slimmed(&self, slim: f64) -> Self {
        let mut cut = self.clone();
        let channels = self.arrays.iter().map(|array| match array.allowed.len() {
            0 => array.channels,
            count => array.allowed[((slim * count as f64) as usize).min(count - 1)],
        });
        let channels: Vec<usize> = channels.collect();
        for (index, array) in cut.arrays.iter_mut().enumerate() {
            let whole = &self.arrays[index];
            array.channels = channels[index];
            array.bottleneck = match array.layer1x1 {
                Some(_) => (whole.bottleneck * array.channels / whole.channels).max(1),
                None => array.channels,
            };
            array.inputs = index.checked_sub(1).map_or(whole.inputs, |before| channels[before]);
            array.head.inputs = array.sum();
            array.head.outputs = channels.get(index + 1).copied().unwrap_or(whole.head.outputs);
        }
        cut
    }

    /// Whether it can be cut down.
    pub fn is_slimmable(&self) -> bool {
        self.arrays.iter().any(|array| !array.allowed.is_empty())
    }
}

impl Array {
    fn new(config: &nam::LayerArray) -> Result<Self, LoadError> {
        let count = size("the number of layers", config.dilations.len() as i64, MOST_LAYERS)?;
        let channels = size("channels", config.channels, MOST_CHANNELS)?;
        let bottleneck = config.bottleneck.map(|value| size("bottleneck", value, MOST_CHANNELS)).transpose()?;
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
        let layers = layers.map(|((&kernel, &dilation), (activation, gate))| {
            Ok(Layer {
                kernel: size("kernel_size", kernel, MOST_TAPS)?,
                dilation: size("a dilation", dilation, MOST_DILATION)?,
                activation: activation.build()?,
                gate,
            })
        });
        let head1x1 = config.head1x1.as_ref().filter(|mix| mix.active).map(|mix| {
            let outputs = size("head1x1.out_channels", mix.out_channels, MOST_CHANNELS)?;
            Ok::<_, LoadError>((outputs, size("head1x1.groups", mix.groups, MOST_CHANNELS)?))
        });
        let layer1x1 = match &config.layer1x1 {
            Some(mix) if !mix.active => None,
            Some(mix) => Some(size("layer1x1.groups", mix.groups, MOST_CHANNELS)?),
            None => Some(1),
        };
        let bottleneck = bottleneck.unwrap_or(channels);
        let head1x1 = head1x1.transpose()?;
        let (head, head_dilation) = config.head(head1x1.map_or(bottleneck, |(outputs, _)| outputs))?;
        Ok(Self {
            inputs: size("input_size", config.input_size, MOST_CHANNELS)?,
            channels,
            bottleneck,
            layers: layers.collect::<Result<_, LoadError>>()?,
            groups_input: size("groups_input", config.groups_input, MOST_CHANNELS)?,
            groups_mixin: size("groups_input_mixin", config.groups_input_mixin, MOST_CHANNELS)?,
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

    /// All convolutions of one layer in the order of their weights, each with its name.
    pub fn shapes(&self, layer: &Layer, condition: usize) -> Shapes {
        let twice = if layer.gate == Gate::None { 1 } else { 2 };
        let z = twice * self.bottleneck;
        let film = |film: nam::Film, channels: usize| {
            let outputs = channels * if film.shift { 2 } else { 1 };
            let groups = usize::try_from(film.groups).unwrap_or_default();
            film.active.then_some(Shape { groups, ..Shape::mix(condition, outputs, true) })
        };
        let films = self.films;
        Shapes {
            conv: Shape { kernel: layer.kernel, groups: self.groups_input, ..Shape::mix(self.channels, z, true) },
            mixin: Shape { groups: self.groups_mixin, ..Shape::mix(condition, z, false) },
            layer1x1: self.layer1x1.map(|groups| Shape { groups, ..Shape::mix(self.bottleneck, self.channels, true) }),
            head1x1: self
                .head1x1
                .map(|(outputs, groups)| Shape { groups, ..Shape::mix(self.bottleneck, outputs, true) }),
            conv_pre: film(films.conv_pre, self.channels),
            conv_post: film(films.conv_post, z),
            mixin_pre: film(films.mixin_pre, condition),
            mixin_post: film(films.mixin_post, z),
            activation_pre: film(films.activation_pre, z),
            activation_post: film(films.activation_post, self.bottleneck),
            layer1x1_post: film(films.layer1x1_post, self.channels),
            head1x1_post: self.head1x1.and_then(|(outputs, _)| film(films.head1x1_post, outputs)),
        }
    }

    fn check(&self, condition: usize) -> Result<(), LoadError> {
        if self.films.layer1x1_post.active && self.layer1x1.is_none() {
            return Err(unfit("layer1x1_post_film and a layer1x1 that is not there"));
        }
        for layer in &self.layers {
            self.shapes(layer, condition).all().into_iter().flatten().try_for_each(|shape| shape.check("a layer"))?;
        }
        Ok(())
    }

    fn weights(&self, condition: usize) -> u64 {
        let of_layer = |layer: &Layer| {
            self.shapes(layer, condition).all().into_iter().flatten().map(|shape| shape.weights()).sum::<u64>()
        };
        let ends = Shape::mix(self.inputs, self.channels, false).weights() + self.head.weights();
        self.layers.iter().map(of_layer).fold(ends, u64::saturating_add)
    }
}

/// All convolutions of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Shapes {
    pub conv: Shape,
    pub mixin: Shape,
    pub layer1x1: Option<Shape>,
    pub head1x1: Option<Shape>,
    pub conv_pre: Option<Shape>,
    pub conv_post: Option<Shape>,
    pub mixin_pre: Option<Shape>,
    pub mixin_post: Option<Shape>,
    pub activation_pre: Option<Shape>,
    pub activation_post: Option<Shape>,
    pub layer1x1_post: Option<Shape>,
    pub head1x1_post: Option<Shape>,
}

impl Shapes {
    fn all(&self) -> [Option<Shape>; 12] {
        [
            Some(self.conv),
            Some(self.mixin),
            self.layer1x1,
            self.head1x1,
            self.conv_pre,
            self.conv_post,
            self.mixin_pre,
            self.mixin_post,
            self.activation_pre,
            self.activation_post,
            self.layer1x1_post,
            self.head1x1_post,
        ]
    }
}

impl PostHead {
    fn new(config: &nam::PostHead, inputs: usize) -> Result<Self, LoadError> {
        let channels = size("head.channels", config.channels, MOST_CHANNELS)?;
        let outputs = size("head.out_channels", config.out_channels, MOST_CHANNELS)?;
        let count = size("the number of head.kernel_sizes", config.kernel_sizes.len() as i64, MOST_LAYERS)?;
        let conv = |(index, &kernel): (usize, &i64)| {
            let inputs = if index == 0 { inputs } else { channels };
            let outputs = if index + 1 == count { outputs } else { channels };
            let kernel = size("head.kernel_sizes", kernel, MOST_TAPS)?;
            Ok(Shape { kernel, ..Shape::mix(inputs, outputs, true) })
        };
        let convs = config.kernel_sizes.iter().enumerate().map(conv).collect::<Result<_, LoadError>>()?;
        Ok(Self { activation: config.activation.build()?, convs })
    }
}

impl nam::LayerArray {
    fn gates(&self, count: usize) -> Result<Vec<Gate>, LoadError> {
        let modes = match &self.gating_mode {
            Some(modes) => each("gating_mode", modes, count)?,
            None if self.gated => vec!["gated".to_owned(); count],
            None => vec!["none".to_owned(); count],
        };
        let seconds = match &self.secondary_activation {
            Some(seconds) => each("secondary_activation", seconds, count)?,
            None => vec![None; count],
        };
        let gate = |(mode, second): (&String, &Option<nam::Activation>)| {
            // What weighs is the logistic function unless the file says otherwise.
            let second = second.as_ref().map_or(Ok(Activation::Sigmoid), nam::Activation::build);
            Ok(match mode.as_str() {
                "none" => Gate::None,
                "gated" => Gate::Gated(second?),
                "blended" => Gate::Blended(second?),
                _ => return Err(LoadError::UnknownPart { what: "the gating mode", name: mode.clone() }),
            })
        };
        modes.iter().zip(&seconds).map(gate).collect()
    }

    fn head(&self, inputs: usize) -> Result<(Shape, usize), LoadError> {
        let (outputs, kernel, bias, dilation) = match (&self.head, self.head_size) {
            (Some(head), _) => (head.out_channels, head.kernel_size, head.bias, head.head_dilation),
            (None, Some(size)) => {
                let bias = self.head_bias.ok_or_else(|| LoadError::MissingKey("head_bias".to_owned()))?;
                (size, 1, bias, 1)
            }
            (None, None) => return Err(LoadError::MissingKey("head_size".to_owned())),
        };
        let shape = Shape {
            kernel: size("head.kernel_size", kernel, MOST_TAPS)?,
            ..Shape::mix(inputs, size("head_size", outputs, MOST_CHANNELS)?, bias)
        };
        Ok((shape, size("head_dilation", dilation, MOST_DILATION)?))
    }

    fn allowed(&self, channels: usize) -> Result<Vec<usize>, LoadError> {
        let Some(slimmable) = &self.slimmable else { return Ok(Vec::new()) };
        match slimmable.method.as_str() {
            "" => return Ok(Vec::new()),
            "slice_channels_uniform" => {}
            method => return Err(LoadError::UnknownPart { what: "the way to slim", name: method.to_owned() }),
        }
        let allowed = slimmable.kwargs.as_ref().and_then(|kwargs| kwargs.allowed_channels.as_ref());
        let Some(allowed) = allowed else { return Ok((1..=channels).collect()) };
        let allowed: Vec<usize> =
            allowed.iter().map(|&count| size("allowed_channels", count, MOST_CHANNELS)).collect::<Result<_, _>>()?;
        let rising = allowed.windows(2).all(|pair| pair[0] < pair[1]);
        let alone = self.groups_input == 1 && self.groups_input_mixin == 1;
        match rising && alone && allowed.last() == Some(&channels) {
            true => Ok(allowed),
            false => Err(unfit("allowed_channels and the channels")),
        }
    }
}

/// One value for each of `count` layers.
fn each<T: Clone>(name: &str, values: &OneOrEach<T>, count: usize) -> Result<Vec<T>, LoadError> {
    match values {
        OneOrEach::One(value) => Ok(vec![value.clone(); count]),
        OneOrEach::Each(values) if values.len() == count => Ok(values.clone()),
        OneOrEach::Each(_) => Err(unfit(&format!("{name} and dilations"))),
    }
}

fn fits(what: &str, asked: i64, there: usize) -> Result<(), LoadError> {
    match usize::try_from(asked) == Ok(there) {
        true => Ok(()),
        false => Err(LoadError::InconsistentShapes(format!("{asked} and {there} ({what})"))),
    }
}

fn unfit(what: &str) -> LoadError {
    LoadError::InconsistentShapes(what.to_owned())
}
