"""The built-in recipes, one folder each. Nobody imports them: `headway.task.find_recipe` finds them by name."""
