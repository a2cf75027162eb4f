//! The settings of the community.

use std::time::Duration;

/// How much of one kind a user may write: so much an hour, and four times as much a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WritingLimit {
    pub per_hour_max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunitySettings {
    pub posts: WritingLimit,
    pub comments: WritingLimit,
    pub reports: WritingLimit,
    /// How often views that were counted in memory are written. A crash loses those of one interval.
    pub view_interval: Duration,
    /// How often the ticket service is told of points.
    pub point_interval: Duration,
}

impl Default for CommunitySettings {
    fn default() -> CommunitySettings {
        CommunitySettings {
            posts: WritingLimit { per_hour_max: 10 },
            comments: WritingLimit { per_hour_max: 60 },
            reports: WritingLimit { per_hour_max: 30 },
            view_interval: Duration::from_secs(10),
            point_interval: Duration::from_secs(1),
        }
    }
}
