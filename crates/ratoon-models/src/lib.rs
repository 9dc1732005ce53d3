//! ratoon-models
