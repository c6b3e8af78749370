"""Events to receivers of the tenant's own, as Standard Webhooks 1.0.0 has it: signed, tried again, shown."""
