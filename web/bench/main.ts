import { mount } from 'svelte';
import '../src/design/base.css';
import Bench from './Bench.svelte';

mount(Bench, { target: document.getElementById('app')! });
