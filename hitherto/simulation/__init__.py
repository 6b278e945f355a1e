"""What a policy would cost: a transcript is sent again, request by request, and every token has its price."""
