//! Guards (checks before a merge) that a workflow file can ask for and that this version does not have yet. They must not be ignored:
//! while the file asks for one, nothing is merged. Whoever implements a guard deletes its line here.

use super::Settings;

struct Guard {
    key: &'static str,
    asked: fn(&Settings) -> bool,
}

const NOT_YET: &[Guard] = &[
    Guard { key: "gates.wave", asked: |s| !s.gates.wave.is_empty() },
    Guard { key: "gates.final", asked: |s| !s.gates.final_.is_empty() },
    Guard { key: "gates.forbidden_patterns", asked: |s| !s.gates.forbidden_patterns.is_empty() },
    Guard { key: "waves.enabled", asked: |s| s.waves.enabled },
];

impl Settings {
    /// Returns the keys (or hook scripts) of the guards that the file asks for and that are not in force.
    pub fn guards_not_in_force(&self) -> Vec<String> {
        let keys = NOT_YET.iter().filter(|guard| (guard.asked)(self)).map(|guard| guard.key.to_owned());
        let scripts = self.gates.guards_without_caller.iter().map(|name| format!(".dirigent/hooks/{name}"));
        keys.chain(scripts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_is_not_in_force_holds_every_merge() {
        let mut settings = Settings::default();
        settings.merge.mode = crate::config::merge::MergeMode::Auto;
        let policy = settings.policy("", false);
        assert!(policy.merge.guards_not_in_force.is_empty() && policy.merge.auto);
        settings.gates.final_ = vec![Default::default()];
        settings.gates.forbidden_patterns = vec!["FIXME".to_owned()];
        let policy = settings.policy("", false);
        assert_eq!(policy.merge.guards_not_in_force, ["gates.final", "gates.forbidden_patterns"]);
        assert!(!policy.merge.auto);
    }
}
