"""What pre-training and fine-tuning share: optimizers, the learning rate, recipes, the device and its machine."""
