"""What pre-training and fine-tuning share: optimizers, the learning rate, recipes, weights as files, the machine."""
