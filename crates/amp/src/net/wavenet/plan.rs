//! What a file says of a WaveNet, checked: sizes that fit together and with the number of weights.

mod array;
mod shapes;

pub use self::{
    array::{Array, Gate, Layer},
    shapes::Shapes,
};
use crate::{
    file::{
        LoadError,
        nam::{self, MAX_CHANNELS, MAX_LAYERS, MAX_TAPS, size},
    },
    memory::DelayLine,
    net::weights::ConvShape,
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

/// Convolutions after all arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct PostHead {
    pub activation: Activation,
    pub convs: Vec<ConvShape>,
}

impl Plan {
    /// Checks what a file says; `condition` is the number of signals of the network that makes the condition.
    ///
    /// # Errors
    /// [`LoadError`], naming what is wrong.
    pub fn new(config: &nam::WaveNet<'_>, condition: Option<usize>) -> Result<Self, LoadError> {
        if config.in_channels.0 != 1 {
            return Err(LoadError::NotOne { what: "inputs", count: config.in_channels.0 });
        }
        size("the number of layer arrays", config.layers.len() as i64, MAX_LAYERS)?;
        let arrays = config.layers.iter().map(Array::new).collect::<Result<Vec<_>, _>>()?;
        let condition = condition.unwrap_or(1);
        for (array, asked) in arrays.iter().zip(&config.layers) {
            fits("the condition and its layers", asked.condition_size.0, condition)?;
            array.check(condition)?;
        }
        fits("the input and the first layers", arrays[0].inputs as i64, 1)?;
        for pair in arrays.windows(2) {
            fits("one array's channels and the next one's input", pair[1].inputs as i64, pair[0].channels)?;
            fits("one array's head and the next one's channels", pair[1].channels as i64, pair[0].head.outputs)?;
        }
        sums_fit(&arrays)?;
        let last = arrays.last().map_or(0, |array| array.head.outputs);
        let head = config.head.as_ref().map(|head| PostHead::new(head, last)).transpose()?;
        Ok(Self { condition, arrays, head })
    }

    /// Signals that come out.
    pub fn outputs(&self) -> usize {
        let of_arrays = self.arrays.last().map_or(0, |array| array.head.outputs);
        self.head.as_ref().and_then(|head| head.convs.last()).map_or(of_arrays, |shape| shape.outputs)
    }

    /// Number of weights in the file.
    pub fn weights(&self) -> u64 {
        let of_arrays: u64 = self.arrays.iter().map(|array| array.weights(self.condition)).fold(0, u64::saturating_add);
        let of_head: u64 = self.head.iter().flat_map(|head| &head.convs).map(ConvShape::weights).sum();
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

    /// Values that its signals and delay lines take.
    pub fn values(&self) -> usize {
        let of_layer = |array: &Array, layer: &Layer| {
            let shapes = array.shapes(layer, self.condition);
            let inputs = if shapes.conv_pre.is_some() { 2 } else { 1 };
            inputs * DelayLine::most_values(array.channels, layer.history())
        };
        let of_array = |array: &Array| {
            let of_layers = array.layers.iter().map(|layer| of_layer(array, layer)).fold(0, usize::saturating_add);
            let of_sum = DelayLine::most_values(array.sum(), array.head_dilation * (array.head.kernel - 1));
            of_layers.saturating_add(of_sum)
        };
        self.arrays.iter().map(of_array).fold(0, usize::saturating_add)
    }

    /// The plan cut down to a size of 0 to 1, as Neural Amp Modeler's core does it. The weights stay those of the whole.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`] where it can only be played whole.
    pub fn slimmed(&self, slim: f64) -> Result<Self, LoadError> {
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
        let whole_groups =
            cut.arrays.iter().zip(&self.arrays).all(|(cut, whole)| !cut.cuts_groups(whole, self.condition));
        match whole_groups && sums_fit(&cut.arrays).is_ok() {
            true => Ok(cut),
            false => Err(unfit("a smaller size and the network's groups or head1x1 (without --slim it plays whole)")),
        }
    }

    /// Whether it can be cut down.
    pub fn is_slimmable(&self) -> bool {
        self.arrays.iter().any(|array| !array.allowed.is_empty())
    }
}

impl PostHead {
    fn new(config: &nam::PostHead, inputs: usize) -> Result<Self, LoadError> {
        let channels = size("head.channels", config.channels.0, MAX_CHANNELS)?;
        let outputs = size("head.out_channels", config.out_channels.0, MAX_CHANNELS)?;
        let count = size("the number of head.kernel_sizes", config.kernel_sizes.len() as i64, MAX_LAYERS)?;
        let conv = |(index, kernel): (usize, &nam::Whole)| {
            let inputs = if index == 0 { inputs } else { channels };
            let outputs = if index + 1 == count { outputs } else { channels };
            let kernel = size("head.kernel_sizes", kernel.0, MAX_TAPS)?;
            Ok(ConvShape { kernel, ..ConvShape::pointwise(inputs, outputs, true) })
        };
        let convs = config.kernel_sizes.iter().enumerate().map(conv).collect::<Result<_, LoadError>>()?;
        Ok(Self { activation: config.activation.build()?, convs })
    }
}

fn fits(what: &str, asked: i64, there: usize) -> Result<(), LoadError> {
    match usize::try_from(asked) == Ok(there) {
        true => Ok(()),
        false => Err(LoadError::InconsistentShapes(format!("{asked} and {there} ({what})"))),
    }
}

/// The sum of each array begins with what the head of the one before makes.
fn sums_fit(arrays: &[Array]) -> Result<(), LoadError> {
    let fit =
        |pair: &[Array]| fits("one array's head and the next one's sum", pair[1].sum() as i64, pair[0].head.outputs);
    arrays.windows(2).try_for_each(fit)
}

fn unfit(what: &str) -> LoadError {
    LoadError::InconsistentShapes(what.to_owned())
}
