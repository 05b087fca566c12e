"""The model card says no more than what is true of a checkpoint."""

import yaml

from model.models import configured
from symbert.model.card import model_card
from symbert.sources import SOURCES

FACTS = {
    **{"size": "tiny", "attention": "pairwise", "pretrain_seed": 7, "steps": 1200, "step": 600, "parameters": 123_456},
    **{"validation_loss": 5.43218, "corpus_hash": "c0ffee", "settings_hash": "5e771", "corpus_source": "hub"},
}
TRAINED = {**configured("tiny", "pairwise").to_dict(), "architectures": ["SymBertForMaskedLM"]}


def test_a_card_has_its_facts_its_licence_and_the_terms_of_its_corpus_and_claims_no_other():
    for source in SOURCES:
        card = model_card({**TRAINED, "pretraining": {**FACTS, "corpus_source": source}})
        front = yaml.safe_load(card.split("---\n")[1])
        assert (front["license"], front["library_name"]) == ("mit", "transformers")
        assert ("Common Crawl" in card) == (source in ("mirror", "hub")), source
        assert ("stands in for OSCAR" in card) == (source == "embedded")
        assert SOURCES[source].terms in card.split("## Licence")[1]
        assert "* pretrain_seed: 7\n" in card and "Not pre-trained" not in card
    started = model_card({**TRAINED, "pretraining": {"size": "tiny", "pretrain_seed": 7, "step": 0}})
    assert "Not pre-trained" in started and "steps:" not in started
