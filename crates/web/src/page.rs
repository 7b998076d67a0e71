//! A page as text: HTML becomes Markdown, in parts that a model can ask for one by one.
