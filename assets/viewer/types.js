/**
 * The shapes that the modules share, for the type checker; nothing here runs.
 *
 * @typedef {'en' | 'ko'} Language
 * @typedef {'light' | 'dark'} Theme
 * @typedef {'to' | 'by'} Direction  What the chosen token attends to (its row), or what attends to it (its column).
 * @typedef {'sqrt' | 'linear' | 'log'} ScaleName  How a weight becomes a place on the colour scale.
 * @typedef {'fixed' | 'head'} RangeName  Where the scale ends: at 1, or at what the head reaches.
 * @typedef {{by: 'position' | 'weight', down: boolean}} Order  Of the table's rows; `down` is the largest first.
 * @typedef {import('./decode.js').Analysis} Analysis
 *
 * @typedef {object} Cell  One cell of a heatmap, in true positions.
 * @property {number} query
 * @property {number} key
 * @property {boolean} [keys]  Reached by keys and not by a pointer.
 *
 * @typedef {object} Stream  What has been generated since the last analysis began.
 * @property {number} request  When it was asked for, among all messages.
 * @property {number[]} generated  Ids of all generated tokens so far.
 * @property {Record<string, string>} pieces  The text of every id among them.
 * @property {number} promptLength  True position of the first generated token.
 * @property {number} seed  What its random numbers started from.
 * @property {boolean} done
 * @property {Run} run
 *
 * @typedef {object} Run  What is known of a continuation while it is being generated.
 * @property {number} branch  Which one it is.
 * @property {number[]} drawn  Probability by the model itself of each token that was drawn; those before were given.
 * @property {Sampling} sampling
 * @property {Lane[]} [others]  Those that are written side by side with it.
 *
 * @typedef {object} Lane  One of several continuations of the same prompt that are written side by side.
 * @property {number} branch
 * @property {number[]} generated
 * @property {number[]} drawn
 * @property {Record<string, string>} pieces
 *
 * @typedef {object} Sampling  How tokens are drawn, as the server wants it back.
 * @property {number} temperature
 * @property {number | null} top_k
 * @property {number | null} top_p
 * @property {number | null} min_p
 * @property {number} repetition_penalty
 * @property {number} seed
 * @property {number} length  Tokens appended at most.
 *
 * @typedef {import('./steps.js').Choices} Choices
 * @typedef {import('./branches.js').Branch} Branch
 *
 * @typedef {'raw' | 'value' | 'logit' | 'rollout' | 'after' | 'difference'} ViewName
 *
 * @typedef {object} Viewed  Other numbers in the cells of an analysis.
 * @property {ViewName} name
 * @property {Analysis} analysis  With these numbers.
 * @property {Analysis} about  The one whose tokens they are about.
 * @property {string} key  What was asked.
 *
 * @typedef {object} Badge  A score that stands on every thumbnail.
 * @property {string} name
 * @property {'text' | 'probe'} source
 * @property {(number | null)[][] | null} values  By layer and head; null where the analysis has them.
 *
 * @typedef {object} WhatIf  What is changed in the model to see what then changes in what it says.
 * @property {[number, number][]} heads  Layer and head.
 * @property {'zero' | 'mean' | 'scale'} mode  What becomes of their output: nothing, its mean over the text, or `factor` times it.
 * @property {number} factor  0 to 2.
 * @property {number[]} attention  Layers whose attention adds nothing.
 * @property {number[]} mlps  Layers whose feed-forward network adds nothing.
 * @property {[number, number, number, number][]} edges  Layer, head, and the true positions of a query and a key hidden from it.
 * @property {boolean} renormalise  Whether the rest of such a row is scaled to sum to 1.
 *
 * @typedef {object} Remark  Something said beside the pictures, which stay as they are.
 * @property {string} [key]  Of the words, with `values` in it.
 * @property {Record<string, string | number>} [values]
 * @property {Record<string, string>} [sentences]  Or one sentence for each language.
 * @property {string} [address]  A link for the person to copy.
 *
 * @typedef {object} Notice
 * @property {string} code
 * @property {Record<string, string>} sentences  One for each language.
 * @property {string | null} action
 *
 * @typedef {object} State  All that decides what is on the page.
 * @property {Analysis | null} analysis  What is looked at: the whole text, or what the model saw at the step.
 * @property {Analysis | null} whole  The whole text.
 * @property {number | null} step  True position of the generated token that is asked about; null for the whole text.
 * @property {Choices | null} choices  What the token was chosen from that `analysis` predicted.
 * @property {boolean} playing  Whether the steps follow one another by themselves.
 * @property {'attention' | 'surprise'} colouring  What the colours of the text mean.
 * @property {Branch[]} branches  The continuations of this prompt that are kept, the first one first.
 * @property {number} branch  The one that is looked at.
 * @property {Stream | null} stream
 * @property {Notice | null} notice
 * @property {number} layer
 * @property {number} head
 * @property {number | null} token  The chosen token's true position; null follows the last one.
 * @property {Direction} direction
 * @property {Cell | null} hovered  The cell, or with query = key the token, under the pointer.
 * @property {Theme} theme
 * @property {Language} language
 * @property {Remark[]} remarks  About a link that was opened or copied.
 * @property {ScaleName} scale
 * @property {RangeName} range
 * @property {boolean} maskFirst  The window's first token has no colour and does not count for a head's range.
 * @property {boolean} table  Whether the chosen row stands in a table as well.
 * @property {Order} order
 * @property {ViewName} view  What the cells of the pictures shall show.
 * @property {Viewed | null} viewed  The numbers of a view that came last.
 * @property {Badge | null} badge  What stands on every thumbnail; null for each head's strongest score.
 * @property {WhatIf} whatIf
 * @property {string | null} tab  Name of the open tab below the pictures.
 * @property {number} stops  Counts how often generation was stopped.
 * @property {number} fetched  Counts the heads that came on demand, so that what waits for them is drawn.
 *
 * @typedef {object} Training  How a model was trained, and what its heads scored on the way.
 * @property {string} name
 * @property {Record<string, number>} runs  The models that have a history, with how many snapshots each has.
 * @property {{step: number[], train: number[], validation: number[], speed: number[]}} records
 * @property {number[]} steps  Those of the snapshots.
 * @property {string[]} scores
 * @property {number} layers
 * @property {number} heads
 * @property {(score: string, layer: number, head: number) => number[]} curve  One value for each snapshot.
 * @property {(score: string, layer: number, head: number) => number | null} appeared  From which step on it was there.
 *
 * @typedef {object} Moment  What a model did with a text at one step of its training.
 * @property {number} step
 * @property {Analysis} analysis
 * @property {boolean} ownText  Whether the text is one of the run's own.
 * @property {number | null} loss  Mean loss on the text, in nats per token.
 * @property {string} sample
 *
 * @typedef {object} Results  What an experiment came to; losses in nats per token.
 * @property {string[]} names  All results that there are.
 * @property {string} name
 * @property {string} experiment  Which one it was.
 * @property {string} preset  The settings that all variants share.
 * @property {number} steps
 * @property {number} characters  Length of the training text.
 * @property {number} batches  Batches of the validation split that a loss is measured on.
 * @property {number[]} seeds  Those that every variant was trained with.
 * @property {string} against  The variant that the others are compared with.
 * @property {ResultRow[]} rows
 * @property {{variant: string, seed: number, steps: number[], losses: number[]}[]} curves
 * @property {{variant: string, seed: number, prompt: string, sample: string, analysis: Analysis | null}[]} sides
 *
 * @typedef {object} ResultRow  A variant of an experiment.
 * @property {string} variant
 * @property {number} parameters
 * @property {number[]} losses  One for each seed.
 * @property {number} mean
 * @property {number | null} spread  Standard deviation over the seeds; null for a single one.
 * @property {number} difference  Mean difference to the variant it is compared with.
 * @property {number | null} margin  Half the width of its 95 % interval.
 * @property {boolean} toldApart  Whether the interval leaves out 0.
 * @property {number} seconds
 *
 * @typedef {object} Host  What the page around the viewer offers.
 * @property {Record<string, any>} props  The component's value and properties.
 * @property {(name: string, detail?: unknown) => void} trigger
 * @property {(names: string | string[], callback: () => void) => void} watch
 * @property {Record<string, (...values: any[]) => Promise<any>>} server
 *
 * @typedef {(key: string, values?: Record<string, string | number>) => string} Translate
 *
 * @typedef {object} View  One part of the page.
 * @property {HTMLElement} element
 * @property {(state: State, changed: Set<keyof State>) => void} update
 */

export {};
