//! Whether two providers differ in nothing but their address.

use super::{LayerKind, Provider};

impl Provider {
    /// Whether both are spoken to in the same way, wherever they are.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.anywhere() == other.anywhere()
    }

    /// Without the address of the entry.
    fn anywhere(&self) -> Self {
        let mut anywhere = Self { base_url: None, ..self.clone() };
        for layer in anywhere.layers.iter_mut().filter(|layer| layer.kind == LayerKind::Entry) {
            layer.spec.endpoint.base_url = None;
        }
        anywhere
    }
}
