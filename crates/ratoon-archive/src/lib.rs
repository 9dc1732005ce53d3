//! ratoon-archive
