// A search engine of documentation sites, driven by fliprank: one JSON object per line in, one JSON value per line out.
//
//     node driver.mjs ENGINE NODE_MODULES
//
// The first line has the documents, {documents: [[id, text of field 0, text of field 1, ...], ...], settings}, and is
// answered by their number. Each further line is a search, {words, settings, depth}, answered by [[id, score], ...].
// settings are {boosts, k, b, d}; boosts of 0 come as tiny numbers, since these engines take 0 for "not set".

import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const [engine, modules] = process.argv.slice(2)
const require = createRequire(join(modules, 'from-here.js'))
const words = text => text.split(' ').filter(Boolean)

/** By field: f0, f1, ..., as many as there are boosts. */
const named = boosts => Object.fromEntries(boosts.map((boost, number) => [`f${number}`, boost]))
const pages = documents => documents.map(([id, ...texts]) =>
  ({ id, ...Object.fromEntries(texts.map((text, number) => [`f${number}`, text])) }))

function minisearch (documents, { boosts }) {
  const MiniSearch = require('minisearch')
  const index = new MiniSearch({ fields: Object.keys(named(boosts)), tokenize: words, processTerm: word => word })
  index.addAll(pages(documents))
  return (asked, { boosts, k, b, d }) =>
    index.search(asked.join(' '), { boost: named(boosts), bm25: { k, b, d } }).map(({ id, score }) => [id, score])
}

function lunr (documents, { boosts, k, b }) {
  const lunr = require('lunr')
  const builder = new lunr.Builder()
  builder.tokenizer = text => words(text).map(word => new lunr.Token(word))
  builder.k1(k)
  builder.b(b)
  for (const [name, boost] of Object.entries(named(boosts))) builder.field(name, { boost })
  for (const page of pages(documents)) builder.add(page)
  const index = builder.build()
  return asked => index.query(query => asked.forEach(word => query.term(word))).map(({ ref, score }) => [ref, score])
}

function orama (documents, { boosts }) {
  const { create, insertMultiple, search } = require('@orama/orama')
  // Orama also finds words that begin with a word of the query; with an end mark, no word is the beginning of another.
  const tokenize = text => [...new Set(words(text).map(word => word + '\u0001'))]
  const schema = Object.fromEntries(Object.keys(named(boosts)).map(name => [name, 'string']))
  const tokenizer = { language: 'english', normalizationCache: new Map(), tokenize }
  const index = create({ schema, components: { tokenizer } })
  insertMultiple(index, pages(documents), documents.length)
  return (asked, { boosts, k, b, d }, depth) =>
    search(index, { term: asked.join(' '), boost: named(boosts), relevance: { k, b, d }, limit: depth })
      .hits.map(({ id, score }) => [id, score])
}

const engines = { minisearch, lunr, orama }
let ask = null
for await (const line of createInterface({ input: process.stdin })) {
  const given = JSON.parse(line)
  let answer
  if (ask === null) {
    ask = engines[engine](given.documents, given.settings)
    answer = given.documents.length
  } else {
    answer = ask(given.words, given.settings, given.depth).slice(0, given.depth)
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
