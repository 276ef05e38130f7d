"""What a run may use: rules, the boundary, the audit log."""
