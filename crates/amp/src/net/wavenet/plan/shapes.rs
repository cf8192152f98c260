//! The convolutions of one layer, in the order of their weights in a file.

use super::array::{Array, Film, Gate, Layer};
use crate::{error::LoadError, net::weights::ConvShape};

/// The shapes of all convolutions of one layer.
#[derive(Debug, Clone, Copy)]
pub struct Shapes {
    pub conv: ConvShape,
    pub mixin: ConvShape,
    pub layer1x1: Option<ConvShape>,
    pub head1x1: Option<ConvShape>,
    pub conv_pre: Option<ConvShape>,
    pub conv_post: Option<ConvShape>,
    pub mixin_pre: Option<ConvShape>,
    pub mixin_post: Option<ConvShape>,
    pub activation_pre: Option<ConvShape>,
    pub activation_post: Option<ConvShape>,
    pub layer1x1_post: Option<ConvShape>,
    pub head1x1_post: Option<ConvShape>,
}

impl Shapes {
    /// Upper bound of the scratch rows of a layer: the outputs of all convolutions, the modulated condition, and the
    /// input of a blended activation.
    pub fn scratch(&self) -> usize {
        let outputs: usize = self.all().into_iter().flatten().map(|shape| shape.outputs).sum();
        outputs + self.mixin.inputs + self.conv.outputs + self.conv.inputs
    }

    /// Number of weights and biases.
    pub fn weights(&self) -> u64 {
        self.all().into_iter().flatten().map(|shape| shape.weights()).fold(0, u64::saturating_add)
    }

    /// True if the layer has only a convolution, a convolution of the condition, and a 1x1 convolution, all in one
    /// group.
    pub fn is_plain(&self) -> bool {
        let others = self.all().into_iter().skip(3).flatten().next();
        let in_one = |shape: &ConvShape| shape.groups == 1;
        others.is_none() && in_one(&self.conv) && in_one(&self.mixin) && self.layer1x1.as_ref().is_none_or(in_one)
    }

    fn all(&self) -> [Option<ConvShape>; 12] {
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

impl Array {
    /// The shapes of the convolutions of a layer.
    pub fn shapes(&self, layer: &Layer, condition: usize) -> Shapes {
        let twice = if layer.gate == Gate::None { 1 } else { 2 };
        let z = twice * self.bottleneck;
        let film = |film: Option<Film>, channels: usize| {
            let Film { shift, groups } = film?;
            let outputs = channels * if shift { 2 } else { 1 };
            Some(ConvShape { groups, ..ConvShape::pointwise(condition, outputs, true) })
        };
        let films = self.films;
        Shapes {
            conv: ConvShape {
                kernel: layer.kernel,
                groups: self.groups_input,
                ..ConvShape::pointwise(self.channels, z, true)
            },
            mixin: ConvShape { groups: self.groups_mixin, ..ConvShape::pointwise(condition, z, false) },
            layer1x1: self
                .layer1x1
                .map(|groups| ConvShape { groups, ..ConvShape::pointwise(self.bottleneck, self.channels, true) }),
            head1x1: self
                .head1x1
                .map(|(outputs, groups)| ConvShape { groups, ..ConvShape::pointwise(self.bottleneck, outputs, true) }),
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

    /// Checks that the sizes of the array match.
    ///
    /// # Errors
    /// [`LoadError::InconsistentShapes`].
    pub fn check(&self, condition: usize) -> Result<(), LoadError> {
        if self.films.layer1x1_post.is_some() && self.layer1x1.is_none() {
            return Err(LoadError::inconsistent("layer1x1_post_film is present without layer1x1"));
        }
        if self.layer1x1.is_none() && self.bottleneck != self.channels {
            return Err(LoadError::inconsistent("bottleneck and channels differ without layer1x1"));
        }
        for layer in &self.layers {
            self.shapes(layer, condition).all().into_iter().flatten().try_for_each(|shape| shape.check("a layer"))?;
        }
        Ok(())
    }

    /// True if a convolution in groups is smaller than in `whole`, the array before the reduction.
    pub fn cuts_groups(&self, whole: &Self, condition: usize) -> bool {
        self.layers.iter().any(|layer| {
            let (cut, whole) = (self.shapes(layer, condition).all(), whole.shapes(layer, condition).all());
            cut.iter().zip(&whole).any(|(cut, whole)| cut != whole && cut.is_some_and(|shape| shape.groups > 1))
        })
    }

    /// All convolutions of the array.
    pub fn convs(&self, condition: usize) -> impl Iterator<Item = ConvShape> {
        let of_layers = self.layers.iter().flat_map(move |layer| self.shapes(layer, condition).all()).flatten();
        of_layers.chain([ConvShape::pointwise(self.inputs, self.channels, false), self.head])
    }
}
