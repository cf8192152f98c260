//! The plan of a WaveNet: sizes that match each other and the number of weights.

mod array;
mod shapes;

pub use self::{
    array::{Array, Film, Films, Gate, Layer},
    shapes::Shapes,
};
use crate::{
    error::LoadError,
    memory::DelayLine,
    net::weights::ConvShape,
    simd::Activation,
    work::{Activations, Work},
};

/// The plan of a WaveNet.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Number of condition signals.
    pub condition: usize,
    /// The arrays of layers, in order.
    pub arrays: Vec<Array>,
    /// Convolutions after all arrays.
    pub head: Option<PostHead>,
}

/// Convolutions after all arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct PostHead {
    /// Activation function before each convolution.
    pub activation: Activation,
    pub convs: Vec<ConvShape>,
}

impl Plan {
    /// Checks that the sizes of consecutive parts match.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`], with the first mismatch.
    pub fn check(&self) -> Result<(), LoadError> {
        for array in &self.arrays {
            array.check(self.condition)?;
        }
        equal("input_size of the first array", self.arrays[0].inputs, "the number of inputs", 1)?;
        for pair in self.arrays.windows(2) {
            let [before, array] = pair else { continue };
            equal("input_size", array.inputs, "the channels of the array before", before.channels)?;
            equal("channels", array.channels, "the head_size of the array before", before.head.outputs)?;
        }
        check_sums(&self.arrays)
    }

    /// Number of output signals.
    pub fn outputs(&self) -> usize {
        let of_arrays = self.arrays.last().map_or(0, |array| array.head.outputs);
        self.head.as_ref().and_then(|head| head.convs.last()).map_or(of_arrays, |shape| shape.outputs)
    }

    /// Number of weights in the file.
    pub fn weights(&self) -> u64 {
        // The last weight scales the output.
        self.convs().map(|shape| shape.weights()).fold(1, u64::saturating_add)
    }

    /// The work per frame.
    pub fn work(&self) -> Work {
        let (mut activations, mut layers) = (Activations::default(), 0);
        for array in &self.arrays {
            // The first and the last convolution of the array have no activation.
            layers += array.layers.len() + 2;
            for Layer { activation, gate, .. } in &array.layers {
                activations.add(activation, array.bottleneck);
                if let Gate::Gated(gate) | Gate::Blended(gate) = gate {
                    activations.add(gate, array.bottleneck);
                }
            }
        }
        if let Some(PostHead { activation, convs }) = &self.head {
            layers += convs.len();
            convs.iter().for_each(|conv| activations.add(activation, conv.inputs));
        }
        Work::of_convolutions(self.multiplications(), activations, layers)
    }

    /// Number of multiplications by weights per frame.
    fn multiplications(&self) -> u64 {
        let all: u64 = self.convs().map(|shape| shape.multiplications()).sum();
        // The 1x1 convolution of the last layer has no next layer and is not computed.
        let last = self.arrays.last().and_then(|array| array.shapes(array.layers.last()?, self.condition).layer1x1);
        all - last.map_or(0, |shape| shape.multiplications())
    }

    /// All convolutions.
    fn convs(&self) -> impl Iterator<Item = ConvShape> {
        let of_arrays = self.arrays.iter().flat_map(|array| array.convs(self.condition));
        of_arrays.chain(self.head.iter().flat_map(|head| &head.convs).copied())
    }

    /// Number of input frames that one output frame depends on, including the current one.
    pub fn receptive_field(&self) -> usize {
        let of_array = |array: &Array| {
            let of_layers: usize = array.layers.iter().map(Layer::history).sum();
            of_layers + array.head_dilation * (array.head.kernel - 1)
        };
        let of_head: usize = self.head.iter().flat_map(|head| &head.convs).map(|conv| conv.kernel - 1).sum();
        1 + self.arrays.iter().map(of_array).sum::<usize>() + of_head
    }

    /// Upper bound of the values in its delay lines.
    pub fn values(&self) -> usize {
        let of_layer = |array: &Array, layer: &Layer| {
            let inputs = if array.films.conv_pre.is_some() { 2 } else { 1 };
            inputs * DelayLine::most_values(array.channels, layer.history())
        };
        let of_array = |array: &Array| {
            let of_layers = array.layers.iter().map(|layer| of_layer(array, layer)).fold(0, usize::saturating_add);
            let of_sum = DelayLine::most_values(array.sum(), array.head_dilation * (array.head.kernel - 1));
            of_layers.saturating_add(of_sum)
        };
        self.arrays.iter().map(of_array).fold(0, usize::saturating_add)
    }

    /// The plan reduced to a size of 0 to 1, as in Neural Amp Modeler's core. The weights remain those of the whole
    /// plan.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`] if the network can only be played whole.
    pub fn slimmed(&self, slim: f64) -> Result<Self, LoadError> {
        let mut cut = self.clone();
        let channels: Vec<usize> = self.arrays.iter().map(|array| array.slimmed_channels(slim)).collect();
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
        match whole_groups && check_sums(&cut.arrays).is_ok() {
            true => Ok(cut),
            false => Err(LoadError::inconsistent(
                "a smaller size does not match the groups or head1x1 of the network (leave out --slim to play it whole)",
            )),
        }
    }

    /// True if the network can be reduced.
    pub fn is_slimmable(&self) -> bool {
        self.arrays.iter().any(|array| !array.allowed_channels.is_empty())
    }
}

fn equal(name: &str, value: usize, other_name: &str, other: usize) -> Result<(), LoadError> {
    match value == other {
        true => Ok(()),
        false => Err(LoadError::inconsistent(format!("{name} is {value}, {other_name} is {other}"))),
    }
}

/// Checks that the head of each array has as many outputs as the sum of the next one, which begins with them.
fn check_sums(arrays: &[Array]) -> Result<(), LoadError> {
    arrays.windows(2).try_for_each(|pair| {
        equal("the head_size of an array", pair[0].head.outputs, "the width of the next array's sum", pair[1].sum())
    })
}
