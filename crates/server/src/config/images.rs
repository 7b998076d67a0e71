//! The `images` section: what is done about images that a model cannot see.

use bridge::ImageInput;
use providers::yaml::Field;

use super::Config;

/// Images for models that see none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImagesConfig {
    /// The model that says what is in them, by a name that clients could use.
    pub describe: Option<String>,
}

/// Whoever describes images must see them.
pub(super) fn check(config: &Config, field: &Field<'_>) {
    let Some(model) = &config.images.describe else { return };
    let Ok(targets) = config.targets(model, 0) else {
        let help = "name it as clients do: provider/model, or an alias".to_owned();
        return field.problem("there is no such model", Some(help));
    };
    let sees = |spec: &providers::Provider, model: &str| {
        spec.for_model(model).dialect.request.content.images != ImageInput::None
    };
    if let Some((provider, name)) = targets.iter().find(|(provider, name)| !sees(&provider.provider, name)) {
        let help = format!("the spec of {}/{name} says `request.content.images: none`", provider.name);
        field.problem("this model cannot see images itself", Some(help));
    }
}
