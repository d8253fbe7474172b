'use strict'

// A pool of connections that are opened when needed, kept for a while, and closed when nobody asks for them

const EventEmitter = require('events')

function Pool (open, options) {
  if (!(this instanceof Pool)) return new Pool(open, options)
  EventEmitter.call(this)
  this.open = open
  this.limit = (options && options.limit) || 8
  this.idle = []
  this.waiting = []
  this.size = 0
}

Object.setPrototypeOf(Pool.prototype, EventEmitter.prototype)

Pool.prototype.acquire = function (callback) {
  var self = this
  var ready = self.idle.pop()
  if (ready) return process.nextTick(callback, null, ready)
  if (self.size >= self.limit) {
    self.waiting.push(callback)
    return
  }
  self.size++
  self.open(function (error, connection) {
    if (error) {
      self.size--
      callback(error)
    } else {
      self.emit('open', connection)
      callback(null, connection)
    }
  })
}

Pool.prototype.release = function (connection) {
  var next = this.waiting.shift()
  if (next) next(null, connection)
  else this.idle.push(connection)
}

// Closes what has not been used since some time; answers how many were closed
Pool.prototype.sweep = function sweep (before) {
  var kept = []
  for (var i = 0, n = this.idle.length; i < n; i++) {
    var connection = this.idle[i]
    if (connection.used < before) {
      try {
        connection.close()
      } catch (error) {
        this.emit('error', error)
      } finally {
        this.size -= 1
      }
    } else kept.push(connection)
  }
  var closed = this.idle.length - kept.length
  this.idle = kept
  return closed
}

// Calls a function again while it fails, with a pause that doubles each time
async function withRetries (task, { retries = 3, pause = 100, sleep = defaultSleep } = {}) {
  let attempt = 0
  let last
  do {
    try {
      return await task(attempt)
    } catch (error) {
      last = error
      await sleep(pause * 2 ** attempt)
    } finally {
      attempt += 1
    }
  } while (attempt <= retries)
  throw last
}

const defaultSleep = ms => new Promise(resolve => setTimeout(resolve, ms))

// What is in several settings, those further right first
function merged (...layers) {
  const result = {}
  for (const layer of layers) {
    for (const key in layer) {
      const value = layer[key]
      const known = result[key]
      if (known instanceof Object && value instanceof Object) result[key] = merged(known, value)
      else if (value !== undefined) result[key] = value
    }
  }
  return result
}

// Reads lines from a stream, whatever the pieces are in which they come
async function * readLines (stream) {
  let rest = ''
  for await (const piece of stream) {
    rest += piece
    let end
    while ((end = rest.indexOf('\n')) >= 0) {
      yield rest.slice(0, end)
      rest = rest.slice(end + 1)
    }
  }
  if (rest) yield rest
}

// The statistics of some measurements: least, most, mean and median
function summary (values) {
  if (!values.length) return null
  const sorted = Float64Array.from(values).sort()
  const middle = sorted.length >> 1
  let sum = 0
  sorted.forEach(value => { sum += value })
  return {
    least: sorted[0],
    most: sorted[sorted.length - 1],
    mean: sum / sorted.length,
    median: sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }
}

// Takes turns between servers, and passes over those that are down
function nextServer (servers, state) {
  let tried = 0
  search: do {
    state.at = (state.at + 1) % servers.length
    const server = servers[state.at]
    tried++
    for (const mark in server.marks) {
      if (mark === 'down') continue search
    }
    return server
  } while (tried < servers.length)
  return null
}

// What a command line asks for
function parseCommand (argv) {
  const command = { name: 'serve', port: 8080, hosts: [] }
  let i = 0
  while (i < argv.length) {
    const word = argv[i++]
    switch (word) {
      case '-p':
      case '--port':
        command.port = +argv[i++]
        break
      case '--host':
        command.hosts.push(argv[i++])
        break
      case '--':
        command.rest = argv.slice(i)
        return command
      default:
        if (word[0] === '-') throw new TypeError('unknown option ' + word)
        command.name = word
    }
  }
  return command
}

module.exports = { Pool, merged, nextServer, parseCommand, readLines, summary, withRetries }
