"""What layout assignment knows about operations: how a transpose passes through each."""
