"""The same losses inside torch and jax: `frontends.torch.loss_module` and `frontends.jax.loss_function`.

Each framework is imported by its own module alone, and comes with its own extra: `pip install "decidewise[torch]"` or
`pip install "decidewise[jax]"`.
"""
