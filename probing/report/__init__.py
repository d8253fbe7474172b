"""Tables, figures and pages made from results."""
