"""Small learners of which candidates are made: given forecasts, smooth features, floored targets and so on."""
