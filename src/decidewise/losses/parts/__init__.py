"""What several losses share: targets, pools of decisions, projections, small networks."""
