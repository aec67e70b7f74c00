// Search with an exported module as its first lines say: node use_exported.mjs ENGINE NODE_MODULES MODULE.
// In: {documents: [{id, ...}], queries: {qid: text}, stems: {word: stem}}. Out: {qid: [[id, score], ...]}.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [engine, modules, path] = process.argv.slice(2)
const require = createRequire(join(modules, 'from-here.js'))
const exported = await import(pathToFileURL(path))
const { documents, queries, stems } = JSON.parse(readFileSync(0, 'utf8'))
const known = new Map(Object.entries(stems))
const stem = word => known.get(word) ?? word

const engines = {
  minisearch () {
    const MiniSearch = require('minisearch')
    const index = new MiniSearch(exported.options(stem))
    index.addAll(documents)
    return text => index.search(text).map(({ id, score }) => [id, score])
  },
  lunr () {
    const lunr = require('lunr')
    const index = lunr(function () {
      exported.configure(lunr, this, stem)
      documents.forEach(document => this.add(document))
    })
    return text => exported.search(index, text, stem).map(({ ref, score }) => [ref, score])
  },
  orama () {
    const { create, insertMultiple, search } = require('@orama/orama')
    const { schema, tokenizer, searchOptions, filled } = exported
    const index = create({ schema, components: { tokenizer: tokenizer(stem) } })
    insertMultiple(index, documents.map(filled))
    return text => search(index, { term: text, ...searchOptions, limit: documents.length })
      .hits.map(({ id, score }) => [id, score])
  },
  terms () {
    return text => exported.terms(text, stem)
  }
}

const ask = engines[engine]()
process.stdout.write(JSON.stringify(Object.fromEntries(Object.entries(queries).map(([id, text]) => [id, ask(text)]))))
